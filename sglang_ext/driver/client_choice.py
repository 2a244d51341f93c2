"""Which engine is meant: one of our own with a model, or a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sglang_ext.driver.embedded_engine import EmbeddedEngine
from sglang_ext.driver.engine_client import EngineClient
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.server_engine import ServerEngine


def new_client(
    model: str | None,
    url: str | None,
    tokenizer: str | None,
    settings: Mapping[str, Any],
    environment: Mapping[str, str],
) -> EngineClient:
    """The client of an engine that is not started yet.

    Args:
        model: a folder or a Hugging Face name; None: the embedded model, fetched if it is not there.
        settings: SGLang's, for an engine of our own.
        environment: variables for its processes.

    Raises:
        InputError: a server with a model or settings, or a model folder that is not there.
        EmbeddedModelError: the embedded model cannot be fetched.
    """
    if url is not None:
        if model is not None or settings:
            extra = "a model" if model is not None else f"SGLang settings ({', '.join(settings)})"
            raise InputError(f"a server is given by its URL, so {extra} cannot be given too: they are the server's")
        return ServerEngine(url, tokenizer)
    if model is None:
        from sglang_ext import embedded_model

        model = str(embedded_model.ensure())
    if model.startswith(("/", ".", "~")):
        model = str(Path(model).expanduser())
        if not Path(model).is_dir():
            raise InputError(f"there is no model folder {model}")
    return EmbeddedEngine(model, tokenizer, settings, environment)
