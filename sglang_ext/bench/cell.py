"""One shape of the chain, measured with every arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.arms import ARMS, UNLOADED
from sglang_ext.bench.sample import Sample
from sglang_ext.bench.spread import Ratio, Spread


class ArmResult(BaseModel):
    """One arm in one cell; times in seconds.

    Args:
        samples: in the order of the repetitions.
        gap_steps: the median gap in unloaded decode steps of this cell.
        gap_ratio, completion_ratio: to the cell's best stock arm; None where no stock arm was measured.
    """

    model_config = ConfigDict(frozen=True)

    gap: Spread
    completion: Spread
    step: Spread
    gap_steps: float
    gap_ratio: Ratio | None
    completion_ratio: Ratio | None
    samples: list[Sample]


class Cell(BaseModel):
    """One shape.

    Args:
        known, output: tokens of B's known text and of A's output.
        step_s: the unloaded decode step, the median over the repetitions of A's median step in `step_arm`.
        best_gap, best_completion: the stock arm with the smallest median; None where none was measured.
    """

    model_config = ConfigDict(frozen=True)

    known: int
    output: int
    step_s: float
    step_arm: str
    best_gap: str | None
    best_completion: str | None
    arms: dict[str, ArmResult]


def summarise(known: int, output: int, samples: Mapping[str, Sequence[Sample]]) -> Cell:
    """The figures of a cell from its samples by arm, of which one at least lets A decode alone."""
    step_arm = next(arm for arm in UNLOADED if arm in samples)
    step_s = median(sample.step_s for sample in samples[step_arm])
    gaps = {arm: [sample.gap_s for sample in own] for arm, own in samples.items()}
    completions = {arm: [sample.completion_s for sample in own] for arm, own in samples.items()}
    best_gap, best_completion = _best_stock(gaps), _best_stock(completions)
    return Cell(
        known=known,
        output=output,
        step_s=step_s,
        step_arm=step_arm,
        best_gap=best_gap,
        best_completion=best_completion,
        arms={
            arm: ArmResult(
                gap=Spread.of(gaps[arm]),
                completion=Spread.of(completions[arm]),
                step=Spread.of([sample.step_s for sample in own]),
                gap_steps=median(gaps[arm]) / step_s,
                gap_ratio=Ratio.of(gaps[arm], gaps[best_gap]) if best_gap else None,
                completion_ratio=Ratio.of(completions[arm], completions[best_completion]) if best_completion else None,
                samples=list(own),
            )
            for arm, own in samples.items()
        },
    )


def _best_stock(values: Mapping[str, Sequence[float]]) -> str | None:
    stock = [arm.name for arm in ARMS if arm.stock and arm.name in values]
    return min(stock, key=lambda arm: median(values[arm]), default=None)
