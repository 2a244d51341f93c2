"""The record of `grape bench simulate` for reading."""

from __future__ import annotations

from rich.console import Console

from sglang_ext.bench.simulation.record import SimulationRecord
from sglang_ext.commands.load_tables import LoadTables, levels_text


def show(record: SimulationRecord, console: Console, every: bool = False) -> None:
    """Per load a table of figures, one of ratios for each policy, and what stands in them.

    Args:
        every: all stock arms; else those that are the best of something.
    """
    title = f"{record.settings['workload']} on {record.machine['name']}"
    for load in record.loads:
        LoadTables("simulated: ", title, record.unloaded_s).show(load, console, every)
    settings = record.settings
    lines = [
        "Every figure is simulated; none was measured on an engine.",
        *levels_text(record.ttft_s, record.tbt_s, record.unloaded_s),
        f"{settings['seeds']} repetitions of {settings['runs']} runs and {settings['seconds']:g} s at least; "
        f"inputs: {settings['inputs']}; arrivals: {settings['arrivals']}; overlap: {record.machine['overlap']}.",
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False)
