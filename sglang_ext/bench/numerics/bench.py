"""`NumericsBench`: one run of the benchmark, engines included."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sglang_ext.bench.engine_setup import EngineSetup, connect
from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.bench.machine import load_average, this_machine, versions
from sglang_ext.bench.numerics.answers import GREEDY, SEEDED, Answer, Sampling, Streamed, plain, streamed
from sglang_ext.bench.numerics.arms import ARMS, GRAPE, MONOLITHIC, PLAIN, NumericsArm
from sglang_ext.bench.numerics.pair import Share
from sglang_ext.bench.numerics.prompts import READER
from sglang_ext.bench.numerics.record import DtypeResult, NumericsRecord, Seeds
from sglang_ext.bench.progress import Progress
from sglang_ext.bench.run_work import RunWork
from sglang_ext.bench.server import serve
from sglang_ext.driver.server_engine import ServerEngine

SEEDED_PROMPTS = 20
"""Prompts that are also sampled with a seed, at most."""


@dataclass
class NumericsBench:
    """Args:
    works: runs of two tasks, one at least.
    settings: for the record.
    """

    setup: EngineSetup
    dtypes: Sequence[str]
    works: Sequence[RunWork]
    settings: dict[str, Any]
    progress: Progress
    _engines: dict[str, EngineRecord] = field(default_factory=dict)

    def run(self) -> NumericsRecord:
        """One engine at a time. Raises EngineError."""
        load, started, begin = load_average(), datetime.now(UTC), time.monotonic()
        results = [asyncio.run(self._dtype(dtype)) for dtype in self.dtypes]
        return NumericsRecord(
            started=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - begin,
            machine=this_machine(),
            load=(load, load_average()),
            versions=versions(),
            model=self.setup.model,
            settings=self.settings,
            arms={arm.name: arm.about for arm in ARMS},
            engines=self._engines,
            results=results,
        )

    async def _dtype(self, dtype: str) -> DtypeResult:
        some = self.works[:SEEDED_PROMPTS]
        async with self._engine(GRAPE, dtype) as source:
            whole = await streamed(source, self.works, GREEDY, self._turns(GRAPE, dtype, len(self.works)))
            sampled = await streamed(source, some, SEEDED, self._turns(GRAPE, dtype, len(some)))
        answers: dict[str, list[Answer]] = {}
        for arm in PLAIN:
            async with self._engine(arm, dtype) as source:
                answers[arm.name] = await self._plain(source, arm, dtype, [s.prompt for s in whole], GREEDY)
                if arm.name == MONOLITHIC:
                    prompts = [s.prompt for s in sampled]
                    once = await self._plain(source, arm, dtype, prompts, SEEDED)
                    again = await self._plain(source, arm, dtype, prompts, SEEDED)
                    seeds = _seeds(sampled, once, again)
        return DtypeResult.of(dtype, whole, answers, seeds)

    async def _plain(
        self, source: ServerEngine, arm: NumericsArm, dtype: str, prompts: Sequence[list[int]], sampling: Sampling
    ) -> list[Answer]:
        tokens = self.works[0].outputs[READER]
        return await plain(source, prompts, tokens, sampling, self._turns(arm, dtype, len(prompts)))

    def _turns(self, arm: NumericsArm, dtype: str, turns: int) -> Callable[[], None]:
        self.progress.measuring(turns)
        return partial(self.progress.measured, f"{dtype}, {arm.name}")

    @asynccontextmanager
    async def _engine(self, arm: NumericsArm, dtype: str) -> AsyncIterator[ServerEngine]:
        kind = arm.engine(dtype)
        launch = self.setup.launch(kind)
        flags = ["--model-path", self.setup.model, *launch.flags]
        with tempfile.TemporaryDirectory(prefix="grape-bench-") as folder:
            log = Path(folder) / "engine.log"
            with serve(flags, launch.environment, log, partial(self.progress.starting, kind.name)) as url:
                engine = await connect(kind, launch, url)
                self._engines[kind.name] = engine.record
                try:
                    yield engine.source
                finally:
                    await engine.source.close()


def _seeds(sampled: Sequence[Streamed], once: Sequence[Answer], again: Sequence[Answer]) -> Seeds:
    return Seeds(
        again=Share.count_of([a.ids == b.ids for a, b in zip(once, again, strict=True)]),
        streamed=Share.count_of([s.answer.ids == a.ids for s, a in zip(sampled, once, strict=True)]),
    )
