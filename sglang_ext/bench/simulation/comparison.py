"""All arms at one load: figures, the envelope of stock, and ratios to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.envelope import FIGURES, envelope, viable
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
        ratios: of figures to the best stock setting's, by baseline.
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
    ratios: dict[str, dict[str, Ratio]]


class LoadResult(BaseModel):
    """One load.

    Args:
        rate: runs per second; None: closed loop.
        baselines: for each the stock arm that is best, by figure. `envelope`: of all viable arms; `plain`, `prewarm`:
            of the viable ones with such a client; `default`: stock's default with the plain one.
    """

    model_config = ConfigDict(frozen=True)

    load: str
    rate: float | None
    baselines: dict[str, dict[str, str]]
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
        able = viable(sets, stock)
        baselines = self._baselines(stock, able)
        return LoadResult(
            load=load,
            rate=rate,
            baselines=baselines,
            arms={
                arm.name: self._figures(arm, results[arm.name], sets, arm.name in able, baselines) for arm in self.arms
            },
        )

    def _all(self, arm: SimulatedArm) -> list[Simulated]:
        found = []
        for jobs in self.repetitions:
            found.append(simulate(jobs, self.machine, arm, self.slo, self.in_flight))
            self.advance(arm.name)
        return found

    def _baselines(self, stock: dict[str, RunSet], able: set[str]) -> dict[str, dict[str, str]]:
        viable_stock = {name: runs for name, runs in stock.items() if name in able}
        groups = {"envelope": viable_stock}
        for client in ("plain", "prewarm"):
            groups[client] = {n: runs for n, runs in viable_stock.items() if n.partition("/")[2].startswith(client)}
        if DEFAULT in stock:
            groups["default"] = {DEFAULT: stock[DEFAULT]}
        return {name: envelope(group) for name, group in groups.items() if group}

    def _figures(
        self,
        arm: SimulatedArm,
        results: list[Simulated],
        sets: dict[str, RunSet],
        able: bool,
        baselines: dict[str, dict[str, str]],
    ) -> ArmFigures:
        own = sets[arm.name]
        steps = [step for result in results for step in result.steps]
        return ArmFigures(
            stock=arm.stock,
            viable=able,
            figures=own.figures(),
            steps=len(steps),
            rows=sum(step.rows for step in steps) / len(steps),
            computed_share=sum(r.computed for r in results) / sum(r.needed for r in results),
            kv_high=max(r.kv_high for r in results) / self.machine.kv_tokens,
            fluid=FluidLimit.of(results[0].steps, self.machine.cost),
            ratios={} if arm.stock else {name: _ratios(own, sets, best) for name, best in baselines.items()},
        )


def _ratios(own: RunSet, sets: dict[str, RunSet], best: dict[str, str]) -> dict[str, Ratio]:
    found = {}
    for name, arm in best.items():
        figure = FIGURES[name]
        if figure.values(own) and (value := ratio(figure, own, sets[arm])) is not None:
            found[name] = value
    return found
