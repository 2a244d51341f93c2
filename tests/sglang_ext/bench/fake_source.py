"""An engine that answers at once or when it is told to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from sglang_ext.driver.engine_client import Chunk, GenerateRequest

Figures = Callable[[GenerateRequest], Mapping[str, Any]]


class FakeSource:
    """Gives the tokens 1, 2, 3 ... to every request.

    Args:
        turn: awaited before each token of a request that decodes, with the number of tokens given.
        warm: awaited before the answer to a request for no tokens.
        figures: more `meta_info` of the last chunk.
        short: tokens that each request is given too few.
    """

    def __init__(
        self,
        turn: Callable[[int], Any] | None = None,
        warm: Callable[[], Any] | None = None,
        figures: Figures = lambda _: {},
        short: int = 0,
    ) -> None:
        self.requests: list[GenerateRequest] = []
        self.log: list[str] = []
        self._turn = turn
        self._warm = warm
        self._figures = figures
        self._short = short

    @property
    def prompts(self) -> list[tuple[int, int]]:
        """(tokens of the prompt, tokens wanted) of each request, in the order of arrival."""
        return [(len(request.input_ids), request.sampling["max_new_tokens"]) for request in self.requests]

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        wanted = request.sampling["max_new_tokens"]
        name = f"{len(request.input_ids)}+{wanted}"
        self.log.append(f"begin {name}")
        meta = {"prompt_tokens": len(request.input_ids), "cached_tokens": 0, **self._figures(request)}
        if not wanted and self._warm:
            await self._warm()
        for number in range(1, wanted + 1 - self._short):
            if self._turn:
                await self._turn(number - 1)
            await asyncio.sleep(0)
            yield Chunk((number,), {"type": "length"} if number == wanted else None, meta)
        if not wanted:
            yield Chunk((), {"type": "length", "length": 0}, meta)
        self.log.append(f"end {name}")
