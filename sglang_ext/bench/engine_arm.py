"""An SGLang engine as an arm: points are made of requests, times are those of the scheduler's steps."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from statistics import median
from typing import Any, Protocol

from sglang_ext.bench.point import Decode, Load, Mixed, Point, Prefill
from sglang_ext.bench.point_sample import DECODE_STEPS, PROBES, SHORT, PointSample
from sglang_ext.bench.point_text import PointText
from sglang_ext.bench.step_log import Step, StepLog
from sglang_ext.bench.together import together
from sglang_ext.bench.token_stream import TokenSource, TokenStream
from sglang_ext.driver.engine_client import GenerateRequest
from sglang_ext.driver.errors import EngineError

# Steps around those that count: a batch fills over several steps, if its prompts are cached.
FILLING = 6
# Decode steps between two mixed ones.
BETWEEN = 3
# More than a mixed run takes; what is left is aborted.
LONG_OUTPUT = 512
# Steps are timed in the scheduler, so that tokens need not leave it one by one.
STREAM_INTERVAL = 10_000
ATTEMPTS = 3
_WAIT_SECONDS = 120.0


class StepSource(TokenSource, Protocol):
    async def abort(self, rid: str) -> None:
        """End a request; its stream ends soon after."""


class EngineArm:
    """Args:
    source: the engine, its prefix cache on and mixed chunks enabled.
    log: of its scheduler.
    """

    def __init__(self, name: str, source: StepSource, log: StepLog, text: PointText) -> None:
        self.name = name
        self._source = source
        self._log = log
        self._text = text

    def takes(self, point: Point) -> bool:
        return True

    async def measure(self, point: Point) -> PointSample:
        """A run without a step of the wanted make-up is repeated: what the prefix cache held may have been evicted."""
        for _ in range(ATTEMPTS):
            self._log.restart()
            match point:
                case Decode():
                    sample = await self._decode(point)
                case Prefill():
                    sample = await self._prefill(point)
                case Mixed():
                    sample = await self._mixed(point)
                case Load():
                    sample = await self._load(point)
            if sample is not None:
                return sample
        seen = [(step.decodes, step.chunks) for step in self._log.steps()]
        raise EngineError(f"{self.name}: no step of {point.label} in {ATTEMPTS} attempts; the last one's steps: {seen}")

    async def _decode(self, point: Decode) -> PointSample | None:
        await self.decode(point.batch, point.context, DECODE_STEPS + FILLING)
        # The first one of a batch comes behind a prefill.
        return _median(alone(self._log.steps(), point.batch)[1:])

    async def decode(self, batch: int, context: int, tokens: int) -> None:
        """Let so many sequences with `context` tokens of prompt make `tokens` tokens each."""
        async with together() as tasks:
            for row in range(batch):
                tasks.create_task(self._read(self._text.row(row, context), tokens))

    async def _prefill(self, point: Prefill) -> PointSample | None:
        runs = PROBES if point.tokens <= SHORT else 1
        for _ in range(runs):
            # A second token, so that a step follows.
            await self._read([*self._text.prefix(point.prefix), *self._text.fresh(point.tokens)], 2)
        steps = [step for step in self._log.steps() if step.chunks and not step.decodes]
        pieces = [chunk for step in steps for chunk in step.chunks]
        if not pieces or pieces[0][0] != point.prefix or sum(tokens for _, tokens in pieces) != point.tokens * runs:
            return None
        # A short one is a single step.
        if runs > 1:
            return _median(steps)
        return PointSample(seconds=sum(step.seconds for step in steps), steps=len(steps))

    async def _mixed(self, point: Mixed) -> PointSample | None:
        wanted = (point.prefix, point.tokens)

        def calm(since: int, steps: list[Step]) -> bool:
            return len(alone(steps[since:][-BETWEEN:], point.batch)) == BETWEEN

        async with self._decoding(point):
            await self._log.wait(partial(calm, 0), _WAIT_SECONDS)
            for _ in range(PROBES):
                await self._read([*self._text.prefix(point.prefix), *self._text.fresh(point.tokens)], 1)
                since = len(self._log.steps())
                # The mixed step ends with the launch of the next.
                await self._log.wait(partial(calm, since), _WAIT_SECONDS)
        steps = self._log.steps()
        found = _median([step for step in steps if step.decodes == point.batch and step.chunks == (wanted,)])
        own = _median(alone(steps, point.batch)[1:])
        if found is None or own is None:
            return None
        return PointSample(seconds=found.seconds, alone_s=own.seconds, steps=found.steps)

    async def _load(self, point: Load) -> PointSample | None:
        begin = time.monotonic()
        async with together() as tasks:
            for _ in range(point.requests):
                tasks.create_task(self._read(self._text.fresh(point.prompt), point.output))
        return PointSample(seconds=time.monotonic() - begin)

    @asynccontextmanager
    async def _decoding(self, point: Mixed) -> AsyncIterator[None]:
        """As many sequences decode as long as the block runs."""
        requests = [new_request(self._text.row(row, point.context), LONG_OUTPUT) for row in range(point.batch)]
        readers = [asyncio.create_task(self._drain(request)) for request in requests]
        try:
            yield
        finally:
            for request in requests:
                await self._source.abort(request.rid)
            await asyncio.gather(*readers)

    async def _drain(self, request: GenerateRequest) -> None:
        async for _ in self._source.generate(request):
            pass

    async def _read(self, ids: list[int], tokens: int) -> None:
        await TokenStream("of the benchmark", tokens).read(self._source, new_request(ids, tokens))


def alone(steps: Sequence[Step], batch: int) -> list[Step]:
    """The steps in which so many sequences decode and nothing else happens."""
    return [step for step in steps if step.decodes == batch and not step.chunks]


def _median(steps: Sequence[Step]) -> PointSample | None:
    if not steps:
        return None
    return PointSample(seconds=median(step.seconds for step in steps), steps=len(steps))


def new_request(ids: list[int], tokens: int) -> GenerateRequest:
    sampling: dict[str, Any] = {
        "temperature": 0.0,
        "max_new_tokens": tokens,
        "ignore_eos": True,
        "stream_interval": STREAM_INTERVAL,
    }
    return GenerateRequest(secrets.token_hex(16) + ".", ids, sampling)
