"""The record of `grape bench engine` for reading."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.engine_goal import Goal
from sglang_ext.bench.engine_record import EngineBenchRecord
from sglang_ext.bench.point_result import PointResult, Timing
from sglang_ext.bench.spread import Ratio

_MARKS = {True: "reached", False: "missed", None: "open"}


def show(record: EngineBenchRecord, console: Console) -> None:
    """Times, each engine's ratios, the goals' verdicts, and what stands in them."""
    console.print(_times(record))
    for name in record.engines:
        console.print(_ratios(record, name))
    console.print(_goals(record.goals))
    for line in _legend(record):
        console.print(line, highlight=False, markup=False)


def _times(record: EngineBenchRecord) -> Table:
    table = _table(
        "Milliseconds: median ± half of the interquartile range",
        "point",
        "limit",
        *(arm.replace("-", "\n") for arm in record.arms),
    )
    for point in record.points:
        table.add_row(point.label, _milliseconds(point.limit_s), *(_time(point, arm) for arm in record.arms))
    return table


def _ratios(record: EngineBenchRecord, name: str) -> Table:
    headers = "tokens/s", "speed against *", "of limit", "* of limit", "mixed/alone"
    table = _table(f"{name}: ratios [95% by bootstrap]", "point", *headers)
    for point in record.points:
        own, baseline = point.arms[name], point.baseline
        table.add_row(
            point.label,
            f"{own.tokens_per_s:,.0f}",
            _ratio(own.speed),
            f"{own.limit_share:.2f}",
            "" if baseline is None else f"{point.arms[baseline].limit_share:.2f}",
            _ratio(own.mixed_ratio),
        )
    return table


def _goals(goals: list[Goal]) -> Table:
    table = _table("Goals of the platform", "goal", "wanted", "found", "")
    for goal in goals:
        bound = "at most" if goal.at_most else "at least"
        found = "" if goal.found is None else f"{goal.found:.2f}"
        table.add_row(goal.goal, f"{bound} {goal.wanted:g}", found, _MARKS[goal.reached])
    return table


def _legend(record: EngineBenchRecord) -> list[str]:
    machine, limits = record.machine, record.limits
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return [
        f"{record.repetitions} repetitions, {record.dtype}, {record.threads} threads; * transformers with its better "
        "attention; above 1 is faster",
        f"limits: {_scaled(limits.bytes_per_s)} GB/s read, {_scaled(limits.flops)} GFLOP/s in a matrix product; "
        "what takes as long as its limit has 1",
        f"{machine.processor}, {machine.cpus} CPUs; load before {record.load[0]}; {versions}; {record.model}",
    ]


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column(first, no_wrap=True)
    for header in others:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _time(point: PointResult, arm: str) -> str:
    if arm not in point.arms:
        return ""
    timing = point.arms[arm].seconds
    mark = " *" if arm == point.baseline else "  "
    return f"{_milliseconds(timing.median)} ±{_milliseconds(timing.iqr / 2)}{mark}"


def _milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _ratio(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{ratio.value:.2f} [{ratio.low:.2f}-{ratio.high:.2f}]"


def _scaled(timing: Timing) -> str:
    return f"{timing.median / 1e9:.0f} ({timing.least / 1e9:.0f}-{timing.most / 1e9:.0f})"
