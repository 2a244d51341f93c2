"""All arms at one load: figures, the envelope of stock, and ratios to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.envelope import LOW_FIGURES, envelope, has, viable
from sglang_ext.bench.fluid import FluidLimit
from sglang_ext.bench.run_figures import RunFigures, RunSet
from sglang_ext.bench.run_ratio import ratio
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.simulation.simulate import Simulated, simulate
from sglang_ext.bench.simulation.simulated_arm import SimulatedArm
from sglang_ext.bench.spread import Ratio
from sglang_ext.bench.workload.job import Job

DEFAULT = "default/plain"


class ArmFigures(BaseModel):
    """One simulated arm.

    Args:
        viable: its completion P95 is within 1.25 times the best stock's, and it keeps the TTFT level if a stock does.
        steps: how many there were. rows: decodes of a step on average.
        computed_share: prefill tokens computed, over those of all prompts; the prefix cache makes it less than 1.
        kv_high: share of the KV that was held at most.
        fluid: the fluid limit of its own steps.
        to_envelope, to_default: ratios of figures to the best viable stock setting's, and to stock's default.
    """

    model_config = ConfigDict(frozen=True)

    stock: bool
    viable: bool
    figures: RunFigures
    steps: int
    rows: float
    computed_share: float
    kv_high: float
    fluid: FluidLimit | None
    to_envelope: dict[str, Ratio]
    to_default: dict[str, Ratio]


class LoadResult(BaseModel):
    """One load. Args: rate: runs per second; None: closed loop. envelope: the stock arm that is best, by figure."""

    model_config = ConfigDict(frozen=True)

    load: str
    rate: float | None
    envelope: dict[str, str]
    arms: dict[str, ArmFigures]


@dataclass(frozen=True)
class Comparison:
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
        results = {arm.name: self._all(arm) for arm in self.arms}
        levels = ServiceLevels(self.slo.ttft_s, self.slo.tbt_s)
        sets = {name: RunSet([r.runs for r in own], levels) for name, own in results.items()}
        stock = {arm.name: sets[arm.name] for arm in self.arms if arm.stock}
        able, best = viable(sets, stock), envelope(stock)
        return LoadResult(
            load=load,
            rate=rate,
            envelope=best,
            arms={arm.name: self._figures(arm, results[arm.name], sets, arm.name in able, best) for arm in self.arms},
        )

    def _all(self, arm: SimulatedArm) -> list[Simulated]:
        found = []
        for jobs in self.repetitions:
            found.append(simulate(jobs, self.machine, arm, self.slo, self.in_flight))
            self.advance(arm.name)
        return found

    def _figures(
        self, arm: SimulatedArm, results: list[Simulated], sets: dict[str, RunSet], able: bool, best: dict[str, str]
    ) -> ArmFigures:
        own = sets[arm.name]
        steps = [step for result in results for step in result.steps]
        compared = [] if arm.stock else [name for name in LOW_FIGURES if has(own, name)]
        default = sets.get(DEFAULT)
        return ArmFigures(
            stock=arm.stock,
            viable=able,
            figures=own.figures(),
            steps=len(steps),
            rows=sum(step.rows for step in steps) / len(steps),
            computed_share=sum(r.computed for r in results) / sum(r.needed for r in results),
            kv_high=max(r.kv_high for r in results) / self.machine.kv_tokens,
            fluid=FluidLimit.of(results[0].steps, self.machine.cost),
            to_envelope={
                name: found
                for name in compared
                if name in best and (found := ratio(LOW_FIGURES[name], own, sets[best[name]])) is not None
            },
            to_default={
                name: found
                for name in compared
                if default is not None and (found := ratio(LOW_FIGURES[name], own, default)) is not None
            },
        )
