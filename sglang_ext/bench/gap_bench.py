"""`GapBench`: one run of the benchmark of the gap, engines included."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tokenizers import Tokenizer

from grape_dsl.encoding import TextEncoder
from sglang_ext.bench.arms import Arm, EngineKind, engines
from sglang_ext.bench.cell import Cell
from sglang_ext.bench.chain import ChainShape, FreshText
from sglang_ext.bench.clients import PREWARM_TOKENS
from sglang_ext.bench.engine_setup import ConnectedEngine, EngineSetup, Launch, connect
from sglang_ext.bench.gap_measurement import GapMeasurement
from sglang_ext.bench.gap_record import ArmRecord, GapRecord, Request
from sglang_ext.bench.machine import load_average, this_machine, versions
from sglang_ext.bench.progress import Progress
from sglang_ext.bench.server import serve
from sglang_ext.bench.verdict import judge


@dataclass(frozen=True, slots=True)
class GapBench:
    """What is measured.

    Args:
        shapes: at least one.
        weight: tokens per streamed chunk.
        seed: of the texts; equal seeds, equal texts.
    """

    setup: EngineSetup
    arms: Sequence[Arm]
    shapes: Sequence[ChainShape]
    repetitions: int
    weight: int
    seed: int = 0

    def run(self, progress: Progress) -> GapRecord:
        """Start the engines, measure, end them. Raises EngineError."""
        load = load_average()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grape-bench-")))
            running: dict[EngineKind, tuple[Launch, str]] = {}
            # One after the other: an engine on an accelerator takes its memory from what is free when it starts.
            for kind in engines(tuple(self.arms)):
                launch = self.setup.launch(kind)
                waiting = partial(progress.starting, kind.name)
                flags = ["--model-path", self.setup.model, *launch.flags]
                url = stack.enter_context(serve(flags, launch.environment, folder / f"{kind.name}.log", waiting))
                running[kind] = (launch, url)
            started, begin = datetime.now(UTC), time.monotonic()
            connected, cells = asyncio.run(self._measure(running, progress))
        return GapRecord(
            started=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - begin,
            machine=this_machine(),
            load=(load, load_average()),
            versions=versions(),
            model=self.setup.model,
            repetitions=self.repetitions,
            request=Request(
                start=self.shapes[0].start,
                suffix=self.shapes[0].suffix,
                answer=self.shapes[0].answer,
                edge_weight=self.weight,
                prewarm_every=PREWARM_TOKENS,
            ),
            engines={kind.name: engine.record for kind, engine in connected.items()},
            arms={
                arm.name: ArmRecord(engine=arm.engine.name, client=arm.client, stock=arm.stock, about=arm.about)
                for arm in self.arms
            },
            cells=cells,
            verdicts=judge(cells),
        )

    async def _measure(
        self, running: Mapping[EngineKind, tuple[Launch, str]], progress: Progress
    ) -> tuple[dict[EngineKind, ConnectedEngine], list[Cell]]:
        connected: dict[EngineKind, ConnectedEngine] = {}
        try:
            for kind, (launch, url) in running.items():
                connected[kind] = await connect(kind, launch, url)
            any_engine = next(iter(connected.values()))
            tokenizer = Tokenizer.from_file(str(any_engine.info.tokenizer / "tokenizer.json"))
            measurement = GapMeasurement(
                arms=self.arms,
                engines={kind.name: engine.source for kind, engine in connected.items()},
                text=FreshText(TextEncoder(tokenizer), self.seed),
                shapes=self.shapes,
                repetitions=self.repetitions,
                weight=self.weight,
                advance=progress.measured,
            )
            progress.measuring(measurement.chains)
            return connected, await measurement.run()
        finally:
            for engine in connected.values():
                await engine.source.close()
