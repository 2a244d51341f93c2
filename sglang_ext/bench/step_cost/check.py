"""How well a profile says the steps of a recorded run: as fitted, corrected as an engine does it, and without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.step_log import Step
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.online_fit import OnlineFit, guess
from sglang_ext.policy.step_times import StepTimes

FITTED, CORRECTED, LEARNED = "as fitted", "corrected while it runs", "learned while it runs"


class ErrorFigures(BaseModel):
    """Relative errors of expected times.

    Args:
        steps: how many.
        mean, median, p95: of the absolute errors.
        bias: the mean error; above 0 the steps were expected to take longer than they did.
    """

    model_config = ConfigDict(frozen=True)

    steps: int
    mean: float
    median: float
    p95: float
    bias: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> ErrorFigures:
        size = sorted(map(abs, errors))
        p95 = size[min(len(size) - 1, int(0.95 * len(size)))]
        return cls(steps=len(size), mean=mean(size), median=median(size), p95=p95, bias=mean(errors))


class StepCheck(BaseModel):
    """Args: errors: by way of expecting, then by regime and `all`. left_out: steps before a pause."""

    model_config = ConfigDict(frozen=True)

    errors: dict[str, dict[str, ErrorFigures]]
    left_out: int


def check(cost: CostModel, steps: Iterable[Step]) -> StepCheck:
    """Expect each step, then learn from it, in the order in which they ran.

    Raises:
        ValueError: there is no step.
    """
    start = guess()
    ways = {
        FITTED: StepTimes(cost),
        CORRECTED: StepTimes(cost),
        LEARNED: StepTimes(start, OnlineFit(start)),
    }
    found: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
    left_out = 0
    for step in steps:
        if step.paused or not step.seconds > 0:
            left_out += 1
            continue
        for way, times in ways.items():
            error = times.time(step.load) / step.seconds - 1
            for regime in ("all", step.load.regime):
                found[way].setdefault(regime, []).append(error)
            if way != FITTED:
                times.observe(step.load, step.seconds)
    if not found[FITTED]:
        raise ValueError(f"there is no step with a time among {left_out}")
    return StepCheck(errors={way: _figures(by) for way, by in found.items()}, left_out=left_out)


def _figures(by_regime: Mapping[str, Sequence[float]]) -> dict[str, ErrorFigures]:
    return {regime: ErrorFigures.of(errors) for regime, errors in by_regime.items()}
