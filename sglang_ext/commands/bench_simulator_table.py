"""The record of `grape bench simulator` for reading."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.load_result import rate_text
from sglang_ext.bench.workflows.simulator_record import Pair, PlaceCheck, SimulatorRecord

NEAR = 0.1
_FIGURES = {
    "gap mean": "gap",
    "gap P50": "P50",
    "gap P95": "P95",
    "gap P99": "P99",
    "switch P50": "switch P50",
    "switch P95": "P95",
    "worst P50": "worst P50",
    "TTFT P95": "TTFT P95",
    "completion P50": "done P50",
    "completion P95": "P95",
}


def show(record: SimulatorRecord, console: Console) -> None:
    """Per place a table of simulated over measured figures, and how many of them are near 1."""
    for place in record.places:
        console.print(_table(place))
        for line in _below(place):
            console.print(line, highlight=False, markup=False)
    lines = [
        "Simulated over measured: 1 is right. The same runs, arrivals and output lengths; F is fitted to the steps "
        "that were measured.",
        f"A client's answer takes {record.client_s * 1000:.1f} ms; u is {record.unloaded_s * 1000:.2f} ms.",
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False)


def _table(place: PlaceCheck) -> Table:
    rate = rate_text(place.rate)
    table = Table(title=f"{place.workload}, {place.load} ({rate})", title_justify="left", box=SIMPLE)
    table.add_column("arm", no_wrap=True)
    for header in _FIGURES.values():
        table.add_column(header, justify="right", no_wrap=True)
    for name, figures in place.arms.items():
        table.add_row(name, *(_cell(figures.get(figure)) for figure in _FIGURES))
    return table


def _cell(pair: Pair | None) -> str:
    return "" if pair is None or pair.ratio is None else f"{pair.ratio:.2f}"


def _below(place: PlaceCheck) -> list[str]:
    ratios = [pair.ratio for figures in place.arms.values() for name, pair in figures.items() if name in _FIGURES]
    known = [ratio for ratio in ratios if ratio is not None]
    near = sum(abs(ratio - 1) <= NEAR for ratio in known)
    errors = ", ".join(f"{regime} {error:.1%}" for regime, error in place.errors.items())
    return [
        f"{near} of {len(known)} figures are within {NEAR:.0%}; {place.runs} runs of each arm; F is off by {errors} on "
        "held-out steps."
    ]
