"""Finds the folder with a model's tokenizer on this machine."""

from __future__ import annotations

from pathlib import Path

from sglang_ext.driver.errors import EngineError

_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json")


def tokenizer_folder(path: str, *, instead: str) -> Path:
    """The folder of tokenizer `path`: a folder, or the name of a repository in the Hugging Face cache.

    Args:
        instead: what the user can do if it cannot be found, a sentence.

    Raises:
        EngineError: there is no such folder here.
    """
    folder = Path(path).expanduser()
    return folder if folder.is_dir() else _cached(path, instead)


def _cached(name: str, instead: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=list(_FILES), local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise EngineError(
            f"the tokenizer {name!r} is neither a folder nor in the cache of this machine. {instead}"
        ) from error
