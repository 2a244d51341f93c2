"""From cells to figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sglang_ext.bench.arms import Arm
from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.comparison import ArmRuns, Comparison
from sglang_ext.bench.envelope import FIGURES
from sglang_ext.bench.load_result import EngineFigures, LoadResult
from sglang_ext.bench.quantities import Values
from sglang_ext.bench.run_figures import Gaps
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.workflows.cell import Cell
from sglang_ext.bench.workflows.record import CalibrationRecord
from sglang_ext.driver.errors import EngineError
from sglang_ext.policy.cost_model import CostModel

MOST_KEPT = 4
"""Stock settings that a screen leaves."""


@dataclass(frozen=True)
class Results:
    """Args: arms: all that may be asked for."""

    calibration: CalibrationRecord
    slo: Slo
    arms: Mapping[str, Arm]

    def load(self, cells: Mapping[str, Sequence[Cell]], load: str, rate: float | None) -> LoadResult:
        """Args:
        cells: by arm, of equal repetitions, one at least.

        Raises:
            EngineError: two arms were given different work.
        """
        _same_work(cells)
        first = next(iter(cells.values()))
        runs = [
            ArmRuns(
                name,
                self.arms[name].stock,
                [cell.repetition for cell in own],
                self._engine(own, None if own is first else first),
            )
            for name, own in cells.items()
        ]
        levels = ServiceLevels(self.slo.ttft_s, self.slo.tbt_s)
        cost = CostModel.from_dict(dict(self.calibration.cost))
        return Comparison(levels, cost, self.calibration.kv_tokens).of(runs, load, rate)

    def _engine(self, cells: Sequence[Cell], first: Sequence[Cell] | None) -> EngineFigures:
        steps_s = sum(step.seconds for cell in cells for step in cell.repetition.steps)
        late = Gaps.of(Values([cell.late for cell in cells]))
        assert late is not None, "a cell has a token"
        seconds = sum(cell.seconds for cell in cells)
        others = [cell.others_s for cell in cells if cell.others_s is not None]
        had_to = sum(cell.distinct for cell in cells)
        return EngineFigures(
            plan_share=sum(cell.plan_s for cell in cells) / steps_s,
            matrix_share=sum(cell.operations for cell in cells) / steps_s / self.calibration.matrix_flops,
            again_share=max(0.0, sum(cell.repetition.computed for cell in cells) / had_to - 1),
            late=late,
            client_share=sum(cell.client_s for cell in cells) / seconds,
            others=sum(others) / seconds if len(others) == len(cells) else None,
            same_output=None if first is None else _same_outputs(cells, first),
        )


def kept(screen: LoadResult) -> list[str]:
    """The stock arms that are viable and best on some figure; of too many those that are best on most."""
    best = screen.baselines.get("envelope", {})
    won = {arm: sum(1 for figure in FIGURES if best.get(figure) == arm) for arm in dict.fromkeys(best.values())}
    return sorted(won, key=lambda arm: -won[arm])[:MOST_KEPT]


def _same_work(cells: Mapping[str, Sequence[Cell]]) -> None:
    given = {name: [cell.prompts for cell in own] for name, own in cells.items()}
    reference = next(iter(given.values()))
    for name, own in given.items():
        if own != reference:
            raise EngineError(
                f"arm {name!r} was given other runs than {next(iter(given))!r}; the cells are of different measurements"
            )


def _same_outputs(cells: Sequence[Cell], first: Sequence[Cell]) -> float:
    pairs = [
        pair for own, other in zip(cells, first, strict=True) for pair in zip(own.outputs, other.outputs, strict=True)
    ]
    return sum(a == b for a, b in pairs) / len(pairs)
