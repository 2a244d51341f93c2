"""Models to encode for: the embedded one, and tiny ones with the chat templates of other families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from grape_dsl.encoding import ChatEncoder

CORPUS = [
    "The quick brown fox jumps over the lazy dog.\n\nQuestion: what is the capital of France?\n\nAnswer: Paris.\n",
    "system user assistant\n\n\n  indented text\n\n\n\t tabs; numbers 2024 and 17, it's fine, don't. <|im_end|>",
    "日本語の文章です。 中文字符。 Ελληνικά. Ünïcödé 🎉🎊👩‍👩‍👧 emoji\r\n{\"json\": [1, 2, {\"a\": null}]}",
    "def f(x):\n    return x + 1\n\n\nfor i in range(10):\n    print(f(i))\n",
] * 20  # fmt: skip

QWEN = """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are a helpful assistant of the test.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == 'assistant' and not message.tool_calls %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

LLAMA = """{% set loop_messages = messages %}
{% for message in loop_messages %}
    {% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim +
        '<|eot_id|>' %}
    {% if loop.index0 == 0 %}
        {% set content = bos_token + content %}
    {% endif %}
    {{- content }}
{% endfor %}
{% if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}
"""

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass
class Family:
    """A model to encode for, and transformers' view of the same."""

    name: str
    encoder: ChatEncoder
    reference: Any  # a transformers tokenizer
    special: list[str]

    def chat_ids(self, messages: list[dict[str, str]]) -> list[int]:
        """The ids of transformers' `apply_chat_template`; a final assistant message is continued."""
        continued = messages[-1]["role"] == "assistant"
        text = self.reference.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=not continued, continue_final_message=continued
        )
        return list(self.reference(text, add_special_tokens=False)["input_ids"])


def train(special: list[str], split: str | None = None, bos: str | None = None) -> Tokenizer:
    """A small byte-level BPE tokenizer. Merges over newlines, as real ones of these families have, are in it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    tokenizer.pre_tokenizer = (
        level if split is None else pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), "isolated"), level])
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if bos is not None:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    return tokenizer


def family(name: str, tokenizer: Tokenizer, template: str, named: dict[str, str], special: list[str]) -> Family:
    transformers = pytest.importorskip("transformers")

    reference = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **named)
    return Family(name, ChatEncoder(tokenizer, template, named), reference, special)


@pytest.fixture(scope="session")
def smollm(embedded_model: Path) -> Family:
    transformers = pytest.importorskip("transformers")

    reference = transformers.AutoTokenizer.from_pretrained(embedded_model)
    special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    return Family("smollm", ChatEncoder.from_folder(embedded_model), reference, special)


@pytest.fixture(scope="session")
def qwen() -> Family:
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = train(special, SPLIT)
    tokenizer.add_tokens([AddedToken("<think>", special=False, normalized=False)])
    named = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    return family("qwen", tokenizer, QWEN, named, special)


@pytest.fixture(scope="session")
def llama() -> Family:
    special = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    tokenizer = train(special, SPLIT, bos="<|begin_of_text|>")
    named = {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}
    return family("llama", tokenizer, LLAMA, named, special)


@pytest.fixture(params=["smollm", "qwen", "llama"])
def any_family(request: pytest.FixtureRequest) -> Family:
    found: Family = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def plain_tokenizer() -> Tokenizer:
    return train(["<s>", "<|im_start|>", "<|im_end|>"])


@pytest.fixture
def encoder_for(plain_tokenizer: Tokenizer) -> Callable[..., ChatEncoder]:
    """Makes an encoder with a template of the test's own."""

    def make(template: str | None, **named: str) -> ChatEncoder:
        return ChatEncoder(plain_tokenizer, template, named, where="the test's model")

    return make
