"""All arms at one load: figures, the envelope of stock, and ratios to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.envelope import FIGURES, envelope, viable
from sglang_ext.bench.fluid import FluidLimit
from sglang_ext.bench.load_result import DEFAULT, ArmFigures, EngineFigures, LoadResult
from sglang_ext.bench.repetition import Repetition, interference
from sglang_ext.bench.run_figures import RunSet
from sglang_ext.bench.run_ratio import ratio
from sglang_ext.bench.spread import Ratio
from sglang_ext.policy.cost_model import CostModel


@dataclass(frozen=True)
class ArmRuns:
    """What an arm did. Args: repetitions: one at least; of all arms alike."""

    name: str
    stock: bool
    repetitions: Sequence[Repetition]
    engine: EngineFigures | None = None


@dataclass(frozen=True)
class Comparison:
    """Args:
    cost: F, for the fluid limit.
    kv_tokens: of KV in all.
    """

    levels: ServiceLevels
    cost: CostModel
    kv_tokens: int

    def of(self, arms: Sequence[ArmRuns], load: str, rate: float | None) -> LoadResult:
        """Args: rate: runs per second; None: closed loop."""
        sets = {arm.name: RunSet([r.runs for r in arm.repetitions], self.levels) for arm in arms}
        stock = {arm.name: sets[arm.name] for arm in arms if arm.stock}
        able = viable(sets, stock)
        baselines = _baselines(stock, able)
        return LoadResult(
            load=load,
            rate=rate,
            baselines=baselines,
            arms={arm.name: self._figures(arm, sets, arm.name in able, baselines) for arm in arms},
        )

    def _figures(
        self, arm: ArmRuns, sets: Mapping[str, RunSet], able: bool, baselines: Mapping[str, Mapping[str, str]]
    ) -> ArmFigures:
        own, done = sets[arm.name], arm.repetitions
        rows = [step.rows for repetition in done for step in repetition.steps]
        return ArmFigures(
            stock=arm.stock,
            viable=able,
            figures=own.figures(),
            steps=len(rows),
            rows=sum(rows) / len(rows),
            interference=interference(done),
            computed_share=sum(r.computed for r in done) / sum(r.needed for r in done),
            kv_high=max(r.kv_high for r in done) / self.kv_tokens,
            fluid=FluidLimit.of(done[0].steps, self.cost),
            ratios={} if arm.stock else {name: _ratios(own, sets, best) for name, best in baselines.items()},
            engine=arm.engine,
        )


def _baselines(stock: Mapping[str, RunSet], able: set[str]) -> dict[str, dict[str, str]]:
    viable_stock = {name: runs for name, runs in stock.items() if name in able}
    groups = {"envelope": viable_stock}
    for client in ("plain", "prewarm"):
        groups[client] = {n: runs for n, runs in viable_stock.items() if n.partition("/")[2].startswith(client)}
    if DEFAULT in stock:
        groups["default"] = {DEFAULT: stock[DEFAULT]}
    return {name: envelope(group) for name, group in groups.items() if group}


def _ratios(own: RunSet, sets: Mapping[str, RunSet], best: Mapping[str, str]) -> dict[str, Ratio]:
    found = {}
    for name, arm in best.items():
        figure = FIGURES[name]
        if figure.values(own) and (value := ratio(figure, own, sets[arm])) is not None:
            found[name] = value
    return found
