"""Reading the tokenizer files of a model folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from grape_dsl.encoding.errors import EncodingError

_NAMED = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """What the files say; see the arguments of `ChatEncoder`."""

    tokenizer: Tokenizer
    chat_template: str | None
    special_tokens: dict[str, str]
    add_bos: bool | None


def read_folder(path: Path) -> TokenizerFiles:
    """Read the tokenizer files in folder `path`. Raises `EncodingError`."""
    tokenizer_file = path / "tokenizer.json"
    if not path.is_dir():
        raise EncodingError(f"there is no model folder {path}. Give the path of a folder with a tokenizer.json.")
    if not tokenizer_file.is_file():
        raise EncodingError(
            f"the folder {path} has no tokenizer.json. Give a model folder with one "
            "(transformers' `AutoTokenizer.from_pretrained(...).save_pretrained(...)` writes it)."
        )
    try:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # tokenizers raises plain Exception
        raise EncodingError(f"{tokenizer_file} is no tokenizer that can be read: {error}") from error
    config = _read_json(path / "tokenizer_config.json")
    special = _special_tokens(_read_json(path / "special_tokens_map.json") | config)
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    # Some models name special tokens in the configuration only.
    tokenizer.add_special_tokens(
        [t for t in special.values() if t not in added and tokenizer.token_to_id(t) is not None]
    )
    add_bos = config.get("add_bos_token")
    return TokenizerFiles(
        tokenizer, _chat_template(path, config), special, add_bos if isinstance(add_bos, bool) else None
    )


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name in _NAMED:
        token = config.get(name)
        if isinstance(token, dict):
            token = token.get("content")
        if isinstance(token, str):
            found[name] = token
    return found


def _chat_template(path: Path, config: dict[str, Any]) -> str | None:
    own_file = path / "chat_template.jinja"
    if own_file.is_file():
        return own_file.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncodingError(f"{file} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise EncodingError(f"{file} holds no JSON object")
    return value
