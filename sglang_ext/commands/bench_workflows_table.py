"""The record of `grape bench workflows` for reading."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.workflows.record import WorkflowRecord, WorkloadResult
from sglang_ext.commands.load_tables import LoadTables, levels_text

_MARKS = {True: "met", False: "missed", None: "open"}


def show(record: WorkflowRecord, console: Console, every: bool = False) -> None:
    """Per workload and load the figures, what only an engine has, and ratios; then the goals.

    Args:
        every: all stock arms; else those that are the best of something.
    """
    for result in record.workloads:
        _show_workload(record, result, console, every)
    for line in _legend(record):
        console.print(line, highlight=False, markup=False)
    for verdict in record.verdicts:
        console.print(f"{_MARKS[verdict.met]}: {verdict.goal}: {verdict.found}", highlight=False, markup=False)


def _show_workload(record: WorkflowRecord, result: WorkloadResult, console: Console, every: bool) -> None:
    step_s = record.calibration.unloaded_s
    mark = "indicative: " if record.indicative else ""
    if result.screen is not None:
        LoadTables(mark, f"screen of {result.workload}", step_s).show(result.screen, console, True)
        console.print(f"kept of {result.workload}: {', '.join(result.kept) or 'none'}", highlight=False)
    for load in result.loads:
        LoadTables(mark, result.workload, step_s).show(load, console, every)
        console.print(_engine(load, f"{mark}{result.workload}, {load.load}: the engines"))
    if result.ablations is not None:
        LoadTables(mark, f"{result.workload}, parts off", step_s).show(result.ablations, console, every)


def _engine(load: LoadResult, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("arm", no_wrap=True)
    headers = ("steps", "rows", "rows x tasks / tokens", "forming", "matrix rate", "computed", "again", "KV", "late ms")
    for header in (*headers, "client", "others", "same output"):
        table.add_column(header, justify="right")
    for name, arm in load.arms.items():
        engine = arm.engine
        if engine is None:
            continue
        table.add_row(
            name,
            f"{arm.steps:,}",
            f"{arm.rows:.2f}",
            f"{arm.interference:.1%}",
            f"{engine.plan_share:.2%}",
            f"{engine.matrix_share:.1%}",
            f"{arm.computed_share:.0%}",
            f"{engine.again_share:.1%}",
            f"{arm.kv_high:.0%}",
            f"{engine.late.p50 * 1000:.1f}",
            f"{engine.client_share:.0%}",
            "" if engine.others is None else f"{engine.others:.2f}",
            "" if engine.same_output is None else f"{engine.same_output:.0%}",
        )
    return table


def _legend(record: WorkflowRecord) -> list[str]:
    machine, found, settings = record.machine, record.calibration, record.settings
    device = machine.accelerator or f"{machine.processor}, {machine.cpus} CPUs"
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    held_out = found.errors.get("all")
    lines = [
        *levels_text(record.ttft_s, record.tbt_s, found.unloaded_s),
        "Tokens count at the end of their step in the engine, in every arm. forming: the scheduler's time to form "
        "steps, of the steps' time. computed: prefill tokens, of those of all prompts; again: those that had been "
        "computed before. late: from a token's step to the client, the median. client: processor time of the clients; "
        "others: processors that processes outside of the measurement kept busy.",
        f"Client against a server that computes nothing: {found.client_request_s * 1000:.2f} ms per request, "
        f"{found.client_token_s * 1e6:.0f} us per token of processor time. Cost model of {found.steps:,} steps of "
        "stock's default" + ("." if held_out is None else f", off by {held_out:.1%} on those held out."),
        f"{settings['repetitions']} repetitions of {settings['seconds']:g} s; inputs: {settings['inputs']}; arrivals: "
        f"{settings['arrivals']}; policy: {settings['policy']}.",
        f"{device}; load before {record.load[0]}; {versions}; {record.model}",
    ]
    if record.unfinished:
        lines.append(f"{record.unfinished} cells were not measured; the same command with the same --output goes on.")
    if record.indicative:
        lines.append("Indicative: too short for a claim; --full measures enough.")
    return lines
