"""The tokens of one request with the time at which each reached the client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from statistics import median
from typing import Any, Protocol

from sglang_ext.driver.engine_client import Chunk, GenerateRequest
from sglang_ext.driver.errors import EngineError, RequestRefused


class TokenSource(Protocol):
    """What the clients need of an engine."""

    def generate(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        """The chunks of one request, the last with its finish reason."""


class TokenStream:
    """Reads one request to its end.

    Attributes:
        ids, stamps: the tokens so far and the seconds (monotonic) at which they came, alike in length.
        ended: no more will come.
        meta: SGLang's `meta_info` of the newest chunk.
        finish: its finish reason; None before the end.

    Args:
        length: tokens that it must give; None: as many as it likes, one at least.
    """

    def __init__(self, name: str, length: int | None) -> None:
        self.ids: list[int] = []
        self.stamps: list[float] = []
        self.meta: Mapping[str, Any] = {}
        self.finish: Mapping[str, Any] | None = None
        self._name = name
        self._length = length
        self._news = asyncio.Condition()
        self.ended = False

    async def read(self, source: TokenSource, request: GenerateRequest) -> None:
        """Raises EngineError unless the request gives exactly the tokens that were asked for."""
        try:
            async for chunk in source.generate(request):
                now = time.monotonic()
                self.ids += chunk.ids
                self.stamps += [now] * len(chunk.ids)
                self.meta, self.finish = chunk.meta, chunk.finish
                async with self._news:
                    self._news.notify_all()
        except RequestRefused as error:
            raise EngineError(f"the engine refused task {self._name}: {error}") from error
        finally:
            self.ended = True
            async with self._news:
                self._news.notify_all()
        if self._length is None and (not self.ids or (self.finish or {}).get("type") == "abort"):
            raise EngineError(f"task {self._name} gave {len(self.ids)} tokens: {self.finish}")
        if self._length is not None and len(self.ids) != self._length:
            raise EngineError(f"task {self._name} gave {len(self.ids)} of {self._length} tokens: {self.finish}")

    async def wait_for(self, tokens: int) -> bool:
        """Wait until that many tokens are there; False if the stream has ended, whatever it holds."""
        async with self._news:
            await self._news.wait_for(lambda: self.ended or len(self.ids) >= tokens)
        return not self.ended and (self._length is None or len(self.ids) < self._length)

    async def wait_for_end(self) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self.ended)

    @property
    def step_s(self) -> float:
        """The median time between two tokens, in seconds."""
        return median(b - a for a, b in zip(self.stamps, self.stamps[1:], strict=False))
