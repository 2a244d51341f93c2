"""Makes an engine run the steps of a setting, by requests."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sglang_ext.bench.engine_arm import StepSource, new_request
from sglang_ext.bench.point_text import PointText
from sglang_ext.bench.step_cost.design import MOST_PIECES, Limits, Setting
from sglang_ext.bench.step_log import Step, StepLog
from sglang_ext.bench.together import together
from sglang_ext.bench.token_stream import TokenStream
from sglang_ext.driver.engine_client import GenerateRequest
from sglang_ext.driver.errors import EngineError

# How often each probe of a setting is made, each time with another text, so that no cache knows it.
REPEATS = 2
# Steps of the decodes alone before the first probe, and between two.
CALM = 2
# More than the decodes of one setting take; what is left is aborted.
LONG_OUTPUT = 512
_WAIT_SECONDS = 120.0
# A decode step, before there was one.
_STEP_SECONDS = 0.02


class StepDriver:
    """Args: log: of the engine's scheduler."""

    def __init__(self, source: StepSource, log: StepLog, text: PointText, limits: Limits) -> None:
        self._source = source
        self._log = log
        self._text = text
        self._limits = limits
        self._step_s = _STEP_SECONDS

    async def prepare(self) -> None:
        """Put what stands in front of pieces into the engine's prefix cache."""
        for number in range(MOST_PIECES):
            await self._read(self._prefix(number, self._limits.prefix), 1)
        self._log.restart()

    async def run(self, setting: Setting, until: float = math.inf) -> list[Step]:
        """The steps of a setting and what was between, as far as they were measured.

        Args:
            until: time of the monotonic clock from which on no probe begins.

        Raises:
            EngineError: the engine fails, or does not come to the steps.
        """
        rows = len(setting.contexts)
        self._log.restart()
        async with self._decoding(setting.contexts):
            if rows:
                await self._calm(rows)
            # While requests come in all at once, their arrival takes time of the steps.
            self._log.restart()
            for probe in setting.probes * REPEATS:
                if time.monotonic() > until:
                    break
                # Where nothing decodes, a second token, so that a step follows.
                await self._probe(probe, 1 if rows else 2)
                if rows:
                    await self._calm(rows)
            return [step for step in self._log.steps() if not step.paused]

    async def _calm(self, rows: int) -> None:
        """Wait until the decodes are alone for some steps from now on.

        It sleeps as long as that should take: whoever looks again and again takes the engine's processor.
        """
        until = time.monotonic() + _WAIT_SECONDS
        # A step is known when the next one begins: that of a probe which was just answered may be still to come.
        now = len(self._log.steps())
        while (missing := CALM - _calm_steps(self._log.steps()[now:], rows)) > 0:
            if time.monotonic() > until:
                raise EngineError(f"{rows} sequences did not come to decode together within {_WAIT_SECONDS:.0f} s")
            await asyncio.sleep((missing + 0.5) * self._step_s)
        self._step_s = self._log.steps()[-1].seconds

    async def _probe(self, pieces: Sequence[tuple[int, int]], tokens: int) -> None:
        async with together() as tasks:
            for number, (prefix, fresh) in enumerate(pieces):
                ids = [*self._prefix(number, prefix), *self._text.fresh(fresh)]
                tasks.create_task(self._read(ids, tokens))

    def _prefix(self, number: int, length: int) -> list[int]:
        return self._text.row(-1 - number, length)

    @asynccontextmanager
    async def _decoding(self, contexts: Sequence[int]) -> AsyncIterator[None]:
        """As many sequences decode as long as the block runs."""
        requests = [new_request(self._text.row(row, context), LONG_OUTPUT) for row, context in enumerate(contexts)]
        readers = [asyncio.create_task(self._drain(each)) for each in requests]
        try:
            yield
        finally:
            for each in requests:
                await self._source.abort(each.rid)
            await asyncio.gather(*readers)

    async def _drain(self, each: GenerateRequest) -> None:
        async for _ in self._source.generate(each):
            pass

    async def _read(self, ids: list[int], tokens: int) -> None:
        await TokenStream("of the profile", tokens).read(self._source, new_request(ids, tokens))


def _calm_steps(steps: Sequence[Step], rows: int) -> int:
    """How many of the last steps were of so many sequences and nothing else."""
    others = (i for i, step in enumerate(reversed(steps)) if step.decodes != rows or step.chunks)
    return next(others, len(steps))
