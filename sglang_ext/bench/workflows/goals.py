"""What Grape is meant to reach on a machine without an accelerator, and whether the numbers do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sglang_ext.bench.attainment import Attainment
from sglang_ext.bench.load_result import DEFAULT, ArmFigures, LoadResult
from sglang_ext.bench.simulation.loads import BUSY_ATTAINED
from sglang_ext.bench.verdict import Verdict
from sglang_ext.bench.workflows.plan import BUSY, CLOSED, KNEE
from sglang_ext.bench.workflows.record import WorkloadResult

Found = tuple[bool, str]
"""Whether one load meets a goal, and the number."""
Check = Callable[[LoadResult, ArmFigures], Found | None]


@dataclass(frozen=True, slots=True)
class Goal:
    """Args:
    check: None where a load has not what the goal is about.
    loads: at which it counts, by name; None: at each.
    """

    goal: str
    check: Check
    loads: tuple[str, ...] | None = None


def judge(workloads: Sequence[WorkloadResult], arm: str) -> list[Verdict]:
    """All goals for one arm. A goal is met if it is at every load that it is about; `found` lists the loads."""
    return [_verdict(goal, workloads, arm) for goal in GOALS]


def _verdict(goal: Goal, workloads: Sequence[WorkloadResult], arm: str) -> Verdict:
    found = list(_found(goal, workloads, arm))
    text = "; ".join(f"{where}: {number}" for where, (_, number) in found)
    return Verdict(goal=goal.goal, met=all(met for _, (met, _) in found) if found else None, found=text or "open")


def _found(goal: Goal, workloads: Sequence[WorkloadResult], arm: str) -> Iterator[tuple[str, Found]]:
    for result in workloads:
        for load in result.loads:
            if arm not in load.arms or (goal.loads is not None and load.load not in goal.loads):
                continue
            found = goal.check(load, load.arms[arm])
            if found is not None:
                yield f"{result.workload} {load.load}", found


def _ratio(figure: str, baseline: str, most: float) -> Check:
    def check(load: LoadResult, arm: ArmFigures) -> Found | None:
        ratio = arm.ratios.get(baseline, {}).get(figure)
        if ratio is None:
            return None
        return ratio.value <= most, f"{ratio.value:.2f} [{ratio.low:.2f}-{ratio.high:.2f}]"

    return check


def _strict(load: LoadResult, arm: ArmFigures) -> Found | None:
    stock = [other.figures.strict for other in load.arms.values() if other.stock and other.viable]
    if not stock or max(stock) >= 0.5:
        return None
    return arm.figures.strict >= 0.8, f"{arm.figures.strict:.0%} (best stock {max(stock):.0%})"


def _attained(load: LoadResult, arm: ArmFigures) -> Found | None:
    stock = [o.figures.attained[Attainment.MEAN] for o in load.arms.values() if o.stock]
    if not stock:
        return None
    own = arm.figures.attained[Attainment.MEAN]
    return own >= 0.95, f"{own:.0%} (best stock {max(stock):.0%}, wanted {BUSY_ATTAINED:.0%})"


def _throughput(load: LoadResult, arm: ArmFigures) -> Found | None:
    if DEFAULT not in load.arms:
        return None
    ratio = arm.figures.tokens_per_s / load.arms[DEFAULT].figures.tokens_per_s
    return ratio >= 1.05, f"{ratio:.3f}"


def _fluid(load: LoadResult, arm: ArmFigures) -> Found | None:
    if arm.fluid is None or arm.figures.line is None:
        return None
    ratio = arm.figures.line.p95 / arm.fluid.p95
    return ratio <= 1.25, f"{ratio:.2f}"


def _decisions(load: LoadResult, arm: ArmFigures) -> Found | None:
    """What forming a step takes more than under stock's default, whose own work is in both."""
    default = load.arms.get(DEFAULT)
    if arm.engine is None or default is None or default.engine is None:
        return None
    share = arm.engine.plan_share - default.engine.plan_share
    return share < 0.007, f"{share:.2%}"


GOALS = (
    Goal("gap at a task switch, P95, 3 times under the best viable plain client", _ratio("switch P95", "plain", 1 / 3)),
    Goal(
        "gap at a task switch, P95, 1.5 times under the best viable prewarming client",
        _ratio("switch P95", "prewarm", 1 / 1.5),
    ),
    Goal("runs with every gap within the level, where the best stock has under 50%: 80% or more", _strict),
    Goal(
        "P95 gap where stock's default knees: 3.8 times under default", _ratio("gap P95", "default", 1 / 3.8), (KNEE,)
    ),
    Goal("P95 gap: not worse than 1.05 times the envelope", _ratio("gap P95", "envelope", 1.05)),
    Goal("mean gap: not worse than 1.05 times the envelope", _ratio("gap mean", "envelope", 1.05)),
    Goal("P99 gap: 1.5 times under the envelope", _ratio("gap P99", "envelope", 1 / 1.5)),
    Goal("mean gap, closed loop: 1.15 times under default", _ratio("gap mean", "default", 1 / 1.15), (CLOSED,)),
    Goal("tokens/s, closed loop: 1.05 times default's", _throughput, (CLOSED,)),
    Goal("run completion P95: 1.15 times under default", _ratio("completion P95", "default", 1 / 1.15)),
    Goal("run completion P95: not worse than the envelope", _ratio("completion P95", "envelope", 1.0)),
    Goal("P95 gap: within 1.25 times the fluid limit", _fluid),
    Goal("attainment (mean gap, TTFT), where the best stock has about 84%: 95%", _attained, (BUSY,)),
    Goal("decisions: under 0.7% of the time of the steps more than stock's", _decisions),
)
