"""All simulated arms at one load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.comparison import ArmRuns, Comparison
from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.repetition import Repetition
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.simulation.simulate import simulate
from sglang_ext.bench.simulation.simulated_arm import SimulatedArm
from sglang_ext.bench.workload.job import Job


@dataclass(frozen=True)
class SimulatedComparison:
    """Args:
    repetitions: the jobs of each.
    advance: told the name of each arm when one of its repetitions is done.
    """

    machine: Machine
    slo: Slo
    arms: Sequence[SimulatedArm]
    repetitions: Sequence[Sequence[Job]]
    in_flight: int | None = None
    advance: Callable[[str], None] = lambda _: None

    def run(self, load: str, rate: float | None) -> LoadResult:
        """Simulate everything. Raises SimulationError if an arm leaves work undone."""
        levels = ServiceLevels(self.slo.ttft_s, self.slo.tbt_s)
        arms = [ArmRuns(arm.name, arm.stock, self._all(arm)) for arm in self.arms]
        return Comparison(levels, self.machine.cost, self.machine.kv_tokens).of(arms, load, rate)

    def _all(self, arm: SimulatedArm) -> list[Repetition]:
        found = []
        for jobs in self.repetitions:
            found.append(simulate(jobs, self.machine, arm, self.slo, self.in_flight))
            self.advance(arm.name)
        return found
