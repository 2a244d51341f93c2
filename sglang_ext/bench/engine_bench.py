"""`EngineBench`: one run of the benchmark of the CPU platform, engines included."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

import torch

from sglang_ext.bench.engine_arm import EngineArm
from sglang_ext.bench.engine_arms import ABOUT, ENGINES, TRANSFORMERS
from sglang_ext.bench.engine_goal import judge
from sglang_ext.bench.engine_record import EngineBenchRecord, LimitRecord
from sglang_ext.bench.engine_setup import EngineSetup
from sglang_ext.bench.machine import load_average, this_machine, versions
from sglang_ext.bench.machine_limits import LimitProbe, MachineLimits
from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.model_work import least_seconds
from sglang_ext.bench.point import Point
from sglang_ext.bench.point_measurement import Measured, PointMeasurement
from sglang_ext.bench.point_result import PointResult, Timing, summarise
from sglang_ext.bench.point_sample import PointArm
from sglang_ext.bench.point_text import PointText
from sglang_ext.bench.progress import Progress
from sglang_ext.bench.step_engine import RunningStepEngine, StepEngine
from sglang_ext.bench.transformers_arm import TransformersArm, TransformersModel
from sglang_ext.driver.errors import EngineError


@dataclass(frozen=True, slots=True)
class EngineBench:
    """What is measured.

    Args:
        arms: their names; an engine at least.
        points: at least one.
    """

    setup: EngineSetup
    arms: Sequence[str]
    points: Sequence[Point]
    repetitions: int

    def run(self, progress: Progress) -> EngineBenchRecord:
        """Start the engines, measure, end them. Raises EngineError."""
        load = load_average()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grape-bench-")))
            running = {
                name: stack.enter_context(
                    RunningStepEngine.start(self.setup, ENGINES[name], folder, partial(progress.starting, name))
                )
                for name in self.arms
                if name in ENGINES
            }
            return asyncio.run(self._measure(running, load, progress))

    async def _measure(
        self, running: Mapping[str, RunningStepEngine], load: float, progress: Progress
    ) -> EngineBenchRecord:
        async with AsyncExitStack() as stack:
            engines = {name: await stack.enter_async_context(engine.connected()) for name, engine in running.items()}
            dtype, threads = _common(engines)
            torch.set_num_threads(threads)
            size = ModelSize.of(self.setup.model, dtype)
            measurement = PointMeasurement(
                self._arms(engines, dtype, size),
                LimitProbe(dtype),
                self.points,
                self.repetitions,
                progress.measured,
            )
            progress.measuring(measurement.turns)
            started, begin = datetime.now(UTC), time.monotonic()
            measured = await measurement.run()
        results = _results(measured, size)
        return EngineBenchRecord(
            started=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - begin,
            machine=this_machine(),
            load=(load, load_average()),
            versions=versions() | {"transformers": version("transformers")},
            model=self.setup.model,
            size=size,
            dtype=dtype,
            threads=threads,
            repetitions=self.repetitions,
            engines={name: engine.record for name, engine in engines.items()},
            arms={name: ABOUT[name] for name in self.arms},
            limits=LimitRecord(
                bytes_per_s=Timing.of([limit.bytes_per_s for limit in measured.limits]),
                flops=Timing.of([limit.flops for limit in measured.limits]),
            ),
            points=list(results.values()),
            goals=judge(results),
        )

    def _arms(self, engines: Mapping[str, StepEngine], dtype: str, size: ModelSize) -> list[PointArm]:
        arms: list[PointArm] = [
            EngineArm(name, engine.source, engine.log, PointText(size.vocabulary)) for name, engine in engines.items()
        ]
        attentions = [name for name in self.arms if name in TRANSFORMERS]
        if attentions:
            model = TransformersModel(self.setup.model, dtype, PointText(size.vocabulary))
            arms += [TransformersArm(name, model) for name in attentions]
        return arms


def _common(engines: Mapping[str, StepEngine]) -> tuple[str, int]:
    """The engines' dtype and number of threads."""
    found = {(str(engine.record.resolved["dtype"]), engine.threads) for engine in engines.values()}
    if len(found) > 1:
        raise EngineError(f"the engines differ in dtype or threads, so that nothing can be compared: {sorted(found)}")
    return found.pop()


def _results(measured: Measured, size: ModelSize) -> dict[Point, PointResult]:
    limits = MachineLimits(
        bytes_per_s=median(limit.bytes_per_s for limit in measured.limits),
        flops=median(limit.flops for limit in measured.limits),
    )
    return {
        point: summarise(point, samples, least_seconds(point, size, limits), TRANSFORMERS)
        for point, samples in measured.samples.items()
    }
