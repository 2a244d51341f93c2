"""`ProfileBench`: one decode step by operation, at several sizes of batch."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sglang_ext.bench.arms import EngineKind
from sglang_ext.bench.engine_arm import EngineArm
from sglang_ext.bench.engine_setup import EngineSetup
from sglang_ext.bench.machine import this_machine, versions
from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.point import CONTEXT
from sglang_ext.bench.point_text import PointText
from sglang_ext.bench.profile_record import ProfileRecord
from sglang_ext.bench.progress import Progress
from sglang_ext.bench.step_engine import RunningStepEngine
from sglang_ext.bench.step_profile import StepProfile
from sglang_ext.driver.errors import EngineError

# Tokens of each sequence: the batch fills up, warms up, is timed and is profiled.
_OUTPUT = 64


@dataclass(frozen=True, slots=True)
class ProfileBench:
    """Args: sizes: of decode batches."""

    setup: EngineSetup
    kind: EngineKind
    sizes: Sequence[int] = (1, 16)

    def run(self, progress: Progress) -> ProfileRecord:
        """Start the engine, profile, end it. Raises EngineError."""
        with tempfile.TemporaryDirectory(prefix="grape-bench-") as folder:
            waiting = partial(progress.starting, self.kind.name)
            with RunningStepEngine.start(self.setup, self.kind, Path(folder), waiting, self.sizes) as engine:
                return asyncio.run(self._profile(engine, progress))

    async def _profile(self, running: RunningStepEngine, progress: Progress) -> ProfileRecord:
        progress.measuring(len(self.sizes))
        async with running.connected() as engine:
            dtype = str(engine.record.resolved["dtype"])
            vocabulary = ModelSize.of(self.setup.model, dtype).vocabulary
            arm = EngineArm(self.kind.name, engine.source, engine.log, PointText(vocabulary))
            for size in self.sizes:
                await arm.decode(size, CONTEXT, _OUTPUT)
                progress.measured(f"decode, batch {size}")
            engine.log.restart()
            found = {profile.batch: profile for profile in engine.log.profiles}
        if missing := [size for size in self.sizes if size not in found]:
            raise EngineError(f"{self.kind.name}: batches of {missing} did not decode long enough to be profiled")
        return ProfileRecord(
            machine=this_machine(),
            versions=versions(),
            model=self.setup.model,
            dtype=dtype,
            threads=engine.threads,
            context=CONTEXT,
            engine=engine.record,
            profiles=[StepProfile.of(found[size], vocabulary) for size in self.sizes],
        )
