"""The measurement of the gap: every shape with every arm, in turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from sglang_ext.bench.arms import Arm, new_client
from sglang_ext.bench.cell import Cell, summarise
from sglang_ext.bench.chain import FIRST, SECOND, ChainShape, FreshText
from sglang_ext.bench.sample import Sample
from sglang_ext.bench.token_stream import TokenSource

_WARM_UP_OUTPUT = 32
# Between two chains, so that the last one's processes have come to rest.
_REST_SECONDS = 0.1


class GapMeasurement:
    """Runs chains one at a time, so that no arm shares the machine with another.

    Args:
        engines: what runs, by the name of its kind.
        text: gives each chain its own text.
        shapes: at least one.
        advance: called with what was done after each chain.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        engines: Mapping[str, TokenSource],
        text: FreshText,
        shapes: Sequence[ChainShape],
        repetitions: int,
        weight: int,
        advance: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._arms = arms
        self._engines = engines
        self._text = text
        self._shapes = shapes
        self._repetitions = repetitions
        self._weight = weight
        self._advance = advance

    @property
    def chains(self) -> int:
        """How many chains are run in all, those that warm up included."""
        return len(self._arms) * (1 + self._repetitions * len(self._shapes))

    async def run(self) -> list[Cell]:
        """Measure; a cell per shape. Raises EngineError."""
        largest = max(self._shapes, key=lambda shape: shape.known)
        for arm in self._arms:
            await self._chain(arm, ChainShape(largest.known, _WARM_UP_OUTPUT), "warming up")
        samples: dict[ChainShape, dict[str, list[Sample]]] = {
            shape: {arm.name: [] for arm in self._arms} for shape in self._shapes
        }
        for repetition in range(self._repetitions):
            for shape in self._shapes:
                # Another arm comes first each time, so that none profits from its place.
                first = repetition % len(self._arms)
                for arm in (*self._arms[first:], *self._arms[:first]):
                    what = f"repetition {repetition + 1}, {shape.known:,} known, {shape.output} streamed, {arm.name}"
                    samples[shape][arm.name].append(await self._chain(arm, shape, what))
        return [summarise(shape.known, shape.output, own) for shape, own in samples.items()]

    async def _chain(self, arm: Arm, shape: ChainShape, what: str) -> Sample:
        work = self._text.chain(shape).work(shape, self._weight, self._text.codec)
        submitted = time.monotonic()
        streams = await new_client(arm.client).run(self._engines[arm.engine.name], work)
        self._advance(what)
        await asyncio.sleep(_REST_SECONDS)
        return Sample.of(submitted, streams.by_task[FIRST], streams.by_task[SECOND])
