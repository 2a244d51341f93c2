"""The benchmark's goals, and whether the numbers meet them."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.arms import ON
from sglang_ext.bench.cell import Cell

GAP_KNOWN, GAP_OUTPUT, GAP_STEPS = 1024, 256, 1.5


class Verdict(BaseModel):
    """A goal; `met` is None where the run did not measure what it is about."""

    model_config = ConfigDict(frozen=True)

    goal: str
    met: bool | None
    found: str


def judge(cells: Sequence[Cell]) -> list[Verdict]:
    return [_gap(cells), _completion(cells)]


def _gap(cells: Sequence[Cell]) -> Verdict:
    goal = f"gap of `{ON.name}` at {GAP_KNOWN:,} known, {GAP_OUTPUT} streamed tokens: at most {GAP_STEPS} decode steps"
    for cell in cells:
        if (cell.known, cell.output) == (GAP_KNOWN, GAP_OUTPUT) and ON.name in cell.arms:
            steps = cell.arms[ON.name].gap_steps
            return Verdict(goal=goal, met=steps <= GAP_STEPS, found=f"{steps:.2f} steps")
    return Verdict(goal=goal, met=None, found="not measured")


def _completion(cells: Sequence[Cell]) -> Verdict:
    """Worse means: the median is above the best stock arm's by more than that arm's interquartile range."""
    goal = f"completion of `{ON.name}`: nowhere worse than the best stock client by more than its spread"
    worse, compared = [], 0
    for cell in cells:
        if ON.name not in cell.arms or cell.best_completion is None:
            continue
        compared += 1
        best = cell.arms[cell.best_completion].completion
        behind = cell.arms[ON.name].completion.median - best.median
        if behind > best.iqr:
            worse.append(
                f"{cell.known:,} known, {cell.output} streamed: {behind:.3f} s behind `{cell.best_completion}`, "
                f"whose spread is {best.iqr:.3f} s"
            )
    if not compared:
        return Verdict(goal=goal, met=None, found="not measured")
    return Verdict(goal=goal, met=not worse, found="; ".join(worse) or f"in none of {compared} shapes")
