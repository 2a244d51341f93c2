"""A scheduler that computes nothing: it writes its steps down, each as long as a formula says, and gives tokens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from sglang_ext.driver.engine_client import Chunk, GenerateRequest

PIECE = 512


def cost(decodes: int, tokens: int) -> float:
    """Seconds of a step with so many decodes and tokens of prefill."""
    return 0.01 + 0.001 * decodes + 0.002 * tokens


@dataclass
class _Running:
    request: GenerateRequest
    prefilled: int
    made: int = 0
    news: asyncio.Queue[Chunk] = field(default_factory=asyncio.Queue)

    @property
    def wanted(self) -> int:
        wanted: int = self.request.sampling["max_new_tokens"]
        return wanted


class FakeScheduler:
    """Mixes prefill and decode as an engine with mixed chunks does.

    Args:
        caching: has a prefix cache.
    """

    def __init__(self, file: Path, caching: bool = True) -> None:
        self.running: list[_Running] = []
        self._file = file.open("w", buffering=1)
        self._file.write('{"threads": 3}\n')
        self._caching = caching
        self._seen: list[list[int]] = []
        self._clock = 100.0
        self._loop: asyncio.Task[None] | None = None

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        own = _Running(request, self._cached(request.input_ids))
        self.running.append(own)
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(self._run())
        while True:
            chunk = await own.news.get()
            yield chunk
            if chunk.finish is not None:
                return

    async def abort(self, rid: str) -> None:
        for own in [own for own in self.running if own.request.rid == rid]:
            self.running.remove(own)
            own.news.put_nowait(Chunk((), {"type": "abort"}, {}))

    def _cached(self, ids: list[int]) -> int:
        best = 0
        for known in self._seen if self._caching else ():
            same = next((i for i, (a, b) in enumerate(zip(ids, known, strict=False)) if a != b), len(known))
            best = max(best, min(same, len(ids) - 1))
        return best

    async def _run(self) -> None:
        idle = {"idle": True}
        while self.running:
            # Those that arrive together are in one step.
            await asyncio.sleep(0.001)
            decoding = [own for own in self.running if own.made]
            chunks = []
            for own in self.running:
                if not own.made:
                    piece = min(PIECE, len(own.request.input_ids) - own.prefilled)
                    chunks.append((own.prefilled, piece))
                    own.prefilled += piece
            kv = sum(len(own.request.input_ids) + own.made for own in decoding) + sum(prefix for prefix, _ in chunks)
            step = {"launch": self._clock, "decodes": len(decoding), "chunks": chunks, "kv": kv}
            self._file.write(json.dumps(step | idle) + "\n")
            idle = {}
            self._clock += cost(len(decoding), sum(tokens for _, tokens in chunks))
            for own in list(self.running):
                if own.prefilled == len(own.request.input_ids):
                    self._token(own)

    def _token(self, own: _Running) -> None:
        if not own.made:
            self._seen.append(own.request.input_ids)
        own.made += 1
        done = own.made == own.wanted
        own.news.put_nowait(Chunk((own.made,), {"type": "length"} if done else None, {}))
        if done:
            self.running.remove(own)
