"""Reading a model's tokenizer files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from grape_dsl.encoding import ChatEncoder, EncodingError
from grape_dsl.graph.micro_task import TurnEnd, TurnStart

PROMPT = [TurnStart("user"), "x", TurnEnd()]


@pytest.fixture
def folder(tmp_path: Path, plain_tokenizer: Tokenizer) -> Path:
    plain_tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def configure(folder: Path, **values: object) -> ChatEncoder:
    (folder / "tokenizer_config.json").write_text(json.dumps(values))
    return ChatEncoder.from_folder(folder)


def shown(encoder: ChatEncoder) -> str:
    (ids,) = encoder.encode(PROMPT)
    return encoder.text.decode(ids)


def test_the_template_of_the_configuration(folder):
    named = {"bos_token": "<s>", "eos_token": {"content": "<|im_end|>", "lstrip": False}}
    encoder = configure(folder, chat_template="{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", **named)
    assert shown(encoder) == "<s>x<|im_end|>"


def test_the_default_of_several_templates(folder):
    several = [{"name": "tools", "template": "T"}, {"name": "default", "template": "D{{ messages[0].content }}"}]
    assert shown(configure(folder, chat_template=several)) == "Dx"


def test_a_template_file_goes_first(folder):
    (folder / "chat_template.jinja").write_text("F{{ messages[0].content }}")
    assert shown(configure(folder, chat_template="C{{ messages[0].content }}")) == "Fx"


def test_special_tokens_from_their_own_file(folder):
    (folder / "special_tokens_map.json").write_text('{"bos_token": "<s>"}')
    assert shown(configure(folder, chat_template="{{ bos_token }}{{ messages[0].content }}")) == "<s>x"


def test_special_tokens_that_only_the_configuration_names(tmp_path, plain_tokenizer):
    plain = json.loads(plain_tokenizer.to_str())
    plain["added_tokens"] = []
    (tmp_path / "tokenizer.json").write_text(json.dumps(plain))
    encoder = configure(tmp_path, eos_token="<|im_end|>", chat_template="{{ messages[0].content }}{{ eos_token }}")
    ids = encoder.encode([TurnStart("user"), "<|im_end|>", TurnEnd()])[0]
    assert ids.count(plain_tokenizer.token_to_id("<|im_end|>")) == 1


@pytest.mark.parametrize(("add_bos", "count"), [(True, 1), (False, 0), (None, 0)])
def test_bos_of_raw_prompts(folder, plain_tokenizer, add_bos, count):
    encoder = configure(folder, add_bos_token=add_bos, bos_token="<s>")
    assert encoder.encode(["x"])[0].count(plain_tokenizer.token_to_id("<s>")) == count


def test_a_folder_without_configuration_takes_raw_prompts(folder):
    encoder = ChatEncoder.from_folder(str(folder))
    assert len(encoder.encode(["x"])) == 1
    with pytest.raises(EncodingError, match=r"has no chat template"):
        encoder.encode(PROMPT)


def test_faults(folder, tmp_path):
    with pytest.raises(EncodingError, match="there is no model folder"):
        ChatEncoder.from_folder(tmp_path / "missing")
    with pytest.raises(EncodingError, match=r"tokenizer_config\.json is not valid JSON"):
        (folder / "tokenizer_config.json").write_text("{")
        ChatEncoder.from_folder(folder)
    with pytest.raises(EncodingError, match=r"tokenizer_config\.json holds no JSON object"):
        (folder / "tokenizer_config.json").write_text("[]")
        ChatEncoder.from_folder(folder)
    with pytest.raises(EncodingError, match="is no tokenizer that can be read"):
        (folder / "tokenizer.json").write_text("{}")
        ChatEncoder.from_folder(folder)
    with pytest.raises(EncodingError, match=r"has no tokenizer\.json"):
        (folder / "tokenizer.json").unlink()
        ChatEncoder.from_folder(folder)
