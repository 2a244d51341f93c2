"""The record of `grape bench gap` for reading."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.cell import ArmResult, Cell
from sglang_ext.bench.gap_record import GapRecord
from sglang_ext.bench.spread import Ratio, Spread

_MARKS = {True: "met", False: "missed", None: "open"}


def show(record: GapRecord, console: Console) -> None:
    """A table per shape, what stands in them, and the goals' verdicts."""
    for cell in record.cells:
        console.print(_table(cell))
    for line in _legend(record):
        console.print(line, highlight=False, markup=False)
    for verdict in record.verdicts:
        console.print(f"{_MARKS[verdict.met]}: {verdict.goal}: {verdict.found}", highlight=False, markup=False)


def _table(cell: Cell) -> Table:
    title = f"{cell.known:,} known, {cell.output} streamed; decode step {cell.step_s * 1000:.1f} ms ({cell.step_arm})"
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("arm")
    for header in ("gap ms", "steps", "ratio", "completion s", "ratio", "A's step ms"):
        table.add_column(header, justify="right", no_wrap=True)
    for name, result in cell.arms.items():
        table.add_row(*_row(cell, name, result))
    return table


def _row(cell: Cell, name: str, result: ArmResult) -> tuple[str, ...]:
    return (
        name,
        _spread(result.gap, 1000, 0) + _star(name == cell.best_gap),
        f"{result.gap_steps:.2f}",
        "" if result.gap_ratio is None else f"{result.gap_ratio.value:.2f}",
        _spread(result.completion, 1, 2) + _star(name == cell.best_completion),
        _ratio(result.completion_ratio),
        f"{result.step.median * 1000:.1f}",
    )


def _legend(record: GapRecord) -> list[str]:
    machine = record.machine
    device = machine.accelerator or f"{machine.processor}, {machine.cpus} CPUs"
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return [
        f"{record.repetitions} repetitions; medians (quartiles); ratios to the best stock arm (*), below 1 is better, "
        "[95% by bootstrap]",
        f"{device}; load before {record.load[0]}; {versions}; {record.model}",
    ]


def _star(best: bool) -> str:
    return " *" if best else "  "


def _spread(spread: Spread, scale: float, digits: int) -> str:
    median, q1, q3 = (value * scale for value in (spread.median, spread.q1, spread.q3))
    return f"{median:.{digits}f} ({q1:.{digits}f}-{q3:.{digits}f})"


def _ratio(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{ratio.value:.2f} [{ratio.low:.2f}-{ratio.high:.2f}]"
