"""`ProfileRun`: starts an engine, measures its steps, and makes its profile."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sglang_ext.bench.arms import EngineKind
from sglang_ext.bench.engine_setup import EngineSetup
from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.point_text import PointText
from sglang_ext.bench.progress import Progress
from sglang_ext.bench.simulation.machine import Overlap
from sglang_ext.bench.step_cost.design import Design, Limits, Setting
from sglang_ext.bench.step_cost.measured import Measurements, fitted
from sglang_ext.bench.step_cost.step_driver import LONG_OUTPUT, StepDriver
from sglang_ext.bench.step_engine import RunningStepEngine
from sglang_ext.driver.errors import EngineError
from sglang_ext.profile.engine_key import EngineKey
from sglang_ext.profile.profile import Profile
from sglang_ext.settings import Streaming

# Ordinary requests only, so that SGLang's own scheduling forms the steps; a profile must not steer its own measurement.
KIND = EngineKind("profile", Streaming.ON, environment=(("GRAPE_PROFILE", "off"),))
# A profile is of the flags' engine, whatever its ranks; it relies on the prefix cache.
OWN_FLAGS = ("disable_radix_cache",)
# Part of the settings that are an earlier one again, so that the noise has the machine's slow changes in it.
AGAIN = 0.2
# Bounds of what is tried; an engine's own may be lower.
ROWS, CONTEXT, KV, TOKENS = 64, 2048, 12288, 2048


@dataclass(frozen=True, slots=True)
class ProfileRun:
    """Args:
    seconds: that the settings may take, the first texts of the prefix cache included.
    kv: tokens that decode in a step may read at most; the first time they have to be prefilled.
    """

    setup: EngineSetup
    seconds: float
    kv: int = KV
    seed: int = 0

    def run(self, progress: Progress) -> Profile:
        """Start the engine, measure, end it. Raises EngineError."""
        with tempfile.TemporaryDirectory(prefix="grape-profile-") as folder:
            waiting = partial(progress.starting, KIND.name)
            with RunningStepEngine.start(self.setup, KIND, Path(folder), waiting) as running:
                return asyncio.run(self._measure(running, progress))

    async def _measure(self, running: RunningStepEngine, progress: Progress) -> Profile:
        async with running.connected() as engine:
            resolved, key = engine.record.resolved, EngineKey.model_validate(engine.log.key)
            limits = limits_of(resolved, self.kv)
            text = PointText(ModelSize.of(self.setup.model, key.dtype).vocabulary, self.seed)
            driver = StepDriver(engine.source, engine.log, text, limits)
            started = datetime.now(UTC).isoformat(timespec="seconds")
            progress.measuring(round(self.seconds))
            begin, clock = time.monotonic(), _Clock(progress)
            await driver.prepare()
            settings = Settings(Design(limits, seed=self.seed), self.seed)
            measurements = await measure(driver, settings, begin + self.seconds, clock.tell)
            length_s = time.monotonic() - begin
        try:
            found = fitted(measurements.list(self.seed))
        except ValueError as error:
            raise EngineError(
                f"{len(measurements)} steps in {length_s:.0f} s are too few for a cost model ({error}); "
                "let nothing else run on the machine, and leave --quick out"
            ) from None
        return Profile(
            key=key,
            cost=found.cost,
            noise=found.noise,
            drift=found.drift,
            kv_tokens=int(resolved["max_total_num_tokens"]),
            chunk=int(resolved["chunked_prefill_size"]),
            running=int(resolved["max_running_requests"]),
            overlap=Overlap.of(key.device, bool(resolved["disable_overlap_schedule"])).value,
            started=started,
            length_s=round(length_s, 1),
            measurements=found.measurements,
        )


class Settings:
    """New settings of a design, and now and then one of those before again, each with its number."""

    def __init__(self, design: Design, seed: int) -> None:
        self._design = design
        self._random = random.Random(seed)
        self._known: list[Setting] = []

    def draw(self) -> tuple[int, Setting]:
        if self._known and self._random.random() < AGAIN:
            number = self._random.randrange(len(self._known))
            return number, self._known[number]
        self._known.append(self._design.draw())
        return len(self._known) - 1, self._known[-1]


async def measure(
    driver: StepDriver, settings: Settings, until: float, tell: Callable[[Setting], None]
) -> Measurements:
    """Run settings until a time of the monotonic clock. Raises EngineError."""
    found = Measurements()
    while time.monotonic() < until:
        number, setting = settings.draw()
        found.add(number, await driver.run(setting, until))
        tell(setting)
    return found


def limits_of(resolved: dict[str, Any], kv: int) -> Limits:
    """What an engine can be asked for, by what SGLang made of its flags."""
    pool, longest = int(resolved["max_total_num_tokens"]), int(resolved["max_req_input_len"])
    chunk = int(resolved["chunked_prefill_size"] or 0)
    tokens = max(2, min(TOKENS, chunk if chunk > 0 else TOKENS, longest // 2, pool // 8))
    context = max(1, min(CONTEXT, longest - LONG_OUTPUT, longest - tokens - 1, pool // 8))
    # One more is the probe's own.
    rows = max(1, min(ROWS, int(resolved["max_running_requests"]) - 1, pool // 64))
    return Limits(rows, context, max(1, min(kv, pool // 4)), tokens, context)


class _Clock:
    """Tells how many seconds have passed."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._begin = time.monotonic()
        self._told = 0

    def tell(self, setting: Setting) -> None:
        passed = round(time.monotonic() - self._begin)
        for _ in range(passed - self._told):
            self._progress.measured(f"{len(setting.contexts)} sequences decode")
        self._told = passed
