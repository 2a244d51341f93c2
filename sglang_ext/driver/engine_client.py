"""What the driver needs of an engine; two classes give it, one in this process tree and one over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sglang_ext.driver.record import TokenLogprob


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One generate request.

    Args:
        rid: fixed length with a closing delimiter, since SGLang takes the rid of an abort as a prefix.
        input_ids: the prompt; of a held task a placeholder, its prompt is in the hint.
        sampling: SGLang's sampling parameters.
        hint: SGLang's `kv_hints`; None on an engine without the plugin.
        logprobs: alternatives per output token, 0 for the token's own only; None for no logprobs.
    """

    rid: str
    input_ids: list[int]
    sampling: Mapping[str, Any]
    hint: Mapping[str, Any] | None = None
    logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """New output of a request.

    Args:
        ids: output ids since the chunk before, as the model produced them.
        finish: SGLang's finish reason in the last chunk, else None.
        meta: SGLang's `meta_info`.
    """

    ids: tuple[int, ...]
    finish: Mapping[str, Any] | None
    meta: Mapping[str, Any]
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """A running engine.

    Args:
        name: `embedded`, or the URL of the server.
        model: the model's path as the engine was given it.
        tokenizer: a folder with the tokenizer, readable here.
        states: the internal state of each scheduler, from which the plugin is known.
    """

    name: str
    model: str
    tokenizer: Path
    sglang: str
    states: tuple[Mapping[str, Any], ...]


class EngineClient(Protocol):
    """All coroutines of one client run on one event loop."""

    async def start(self) -> EngineInfo:
        """Raises EngineError if there is no engine to talk to, with the tail of its log where it has one."""

    def interrupt(self) -> None:
        """Let a start that is going on fail soon. Called from another thread."""

    async def states(self) -> tuple[Mapping[str, Any], ...]:
        """The internal state of each scheduler, now."""

    def generate(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        """The chunks of one request, the last with its finish reason.

        Raises RequestRefused if the engine does not take it, EngineError if the engine is gone.
        """

    async def abort(self, rid: str) -> None:
        """Ask the engine to end a request; its stream ends with finish reason `abort` soon after."""

    async def died(self) -> str:
        """Returns, with the reason, when the engine is gone; never as long as it lives."""

    async def close(self) -> None:
        """Safe to call twice, and after a failed start."""
