"""`Session`: a mode of the benchmark from its first stage to its record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sglang_ext.bench.arms import Arm
from sglang_ext.bench.gap_record import ArmRecord
from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.machine import load_average, this_machine, versions
from sglang_ext.bench.workflows.arms import ABLATIONS, GRAPE, STOCK, ArmNames
from sglang_ext.bench.workflows.bench import WorkflowBench
from sglang_ext.bench.workflows.goals import judge
from sglang_ext.bench.workflows.plan import CLOSED, KNEE, Mode, Place, Stage
from sglang_ext.bench.workflows.record import WorkflowRecord, WorkloadResult
from sglang_ext.bench.workflows.results import Results, kept, with_default

# For the time plan, which is made before the screen has said which ones it leaves.
_ASSUMED = ("mixed-64/plain", "mixed-128/plain", "mixed-128/prewarm", "interval-4/plain")
# The first workload at every load; the others, the parts and the closed loop at one, less often.
_FEW, _BLOCKS = 3, 2


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured.

    Args:
        arms: names; empty: those of the mode.
    """

    mode: Mode
    names: ArmNames
    workloads: tuple[str, ...]
    loads: tuple[str, ...]
    repetitions: int
    arms: tuple[str, ...] = ()

    def screen(self) -> Stage | None:
        """Every stock setting, each workload at one load."""
        if self.mode.name == "quick":
            return None
        places = tuple(Place(workload, KNEE) for workload in self.workloads)
        return Stage("screen", self.names.arms((STOCK,)), places, 1)

    def stages(self, workload: str, left: Sequence[str]) -> list[Stage]:
        """What follows the screen for a workload. Args: left: the stock arms that the screen kept."""
        if self.mode.name == "screen":
            return []
        arms = self.names.arms(self.arms or (GRAPE, *with_default(left)))
        if self.mode.name == "quick" or workload != self.workloads[0]:
            loads = self.loads if self.mode.name == "quick" else (KNEE,)
            repetitions = self.repetitions if self.mode.name == "quick" else min(_FEW, self.repetitions)
            return [Stage(workload, arms, tuple(Place(workload, load) for load in loads), repetitions)]
        few, knee = min(_FEW, self.repetitions), (Place(workload, KNEE),)
        return [
            Stage(workload, arms, tuple(Place(workload, load) for load in self.loads), self.repetitions, _BLOCKS),
            Stage(ABLATIONS, self.names.arms((GRAPE, *with_default(()), ABLATIONS)), knee, few),
            Stage(CLOSED, arms, (Place(workload, CLOSED),), few),
        ]

    def all_stages(self) -> list[Stage]:
        """About what there will be, for the time plan."""
        screen = self.screen()
        return [
            *([screen] if screen else []),
            *(stage for workload in self.workloads for stage in self.stages(workload, _ASSUMED)),
        ]


@dataclass
class Session:
    """Args: settings: for the record."""

    bench: WorkflowBench
    choice: Choice
    model: str
    settings: dict[str, Any]
    _arms: dict[str, Arm] = field(default_factory=dict)
    _unfinished: int = 0

    def run(self) -> WorkflowRecord:
        """Measure what is missing. Raises EngineError."""
        load, started = load_average(), datetime.now(UTC)
        screen = self.choice.screen()
        if screen is not None:
            self._measure(screen)
        results = [self._workload(workload, screen) for workload in self.choice.workloads]
        calibration, slo = self.bench.calibration(), self.bench.slo()
        arms = list(self._arms.values())
        return WorkflowRecord(
            mode=self.choice.mode.name,
            indicative=self.choice.mode.name != "full",
            started=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - self.bench.begin,
            machine=this_machine(),
            load=(load, load_average()),
            versions=versions(),
            model=self.model,
            settings=self.settings,
            calibration=calibration,
            ttft_s=slo.ttft_s,
            tbt_s=slo.tbt_s,
            engines=self.bench.engines(arms),
            arms={
                arm.name: ArmRecord(engine=arm.engine.name, client=arm.client, stock=arm.stock, about=arm.about)
                for arm in arms
            },
            workloads=results,
            unfinished=self._unfinished,
            verdicts=judge(results, GRAPE),
        )

    def _workload(self, workload: str, screen: Stage | None) -> WorkloadResult:
        screened = None if screen is None else self._result(screen, Place(workload, KNEE))
        left = [] if screened is None else kept(screened)
        loads: list[LoadResult] = []
        ablations: LoadResult | None = None
        for stage in self.choice.stages(workload, left):
            self._measure(stage)
            found = [result for place in stage.places if (result := self._result(stage, place)) is not None]
            if stage.name == ABLATIONS:
                ablations = found[0] if found else None
            else:
                loads += found
        return WorkloadResult(workload=workload, screen=screened, kept=left, loads=loads, ablations=ablations)

    def _measure(self, stage: Stage) -> None:
        self._arms |= {arm.name: arm for arm in stage.arms}
        self.bench.run(stage)
        self._unfinished += self.bench.missing(stage)

    def _result(self, stage: Stage, place: Place) -> LoadResult | None:
        cells = self.bench.cells(stage, place)
        if not cells:
            return None
        results = Results(self.bench.calibration(), self.bench.slo(), self._arms)
        return results.load(cells, place.load, self.bench.rate(place))
