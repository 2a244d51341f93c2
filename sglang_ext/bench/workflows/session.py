"""`Session`: a mode of the benchmark from its first stage to its record."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sglang_ext.bench.arms import Arm
from sglang_ext.bench.gap_record import ArmRecord
from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.machine import load_average, this_machine, versions
from sglang_ext.bench.workflows.arms import ABLATIONS, GRAPE
from sglang_ext.bench.workflows.bench import WorkflowBench
from sglang_ext.bench.workflows.choice import Choice
from sglang_ext.bench.workflows.goals import judge
from sglang_ext.bench.workflows.plan import KNEE, Place, Stage
from sglang_ext.bench.workflows.record import WorkflowRecord, WorkloadResult
from sglang_ext.bench.workflows.results import Results, kept


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
            engines=self.bench.engine_records(arms),
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
