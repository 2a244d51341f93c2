"""`grape bench workflows`, also `grape bench` with options alone: whole workflows on real engines under load."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from grape_dsl.cli import ExitCode
from sglang_ext.bench.machine import versions
from sglang_ext.bench.report.workflow_report import workflow_report
from sglang_ext.bench.simulation.loads import check_loads
from sglang_ext.bench.workflows.arms import QUICK, ArmNames
from sglang_ext.bench.workflows.choice import Choice
from sglang_ext.bench.workflows.plan import CLOSED, MODES, NAMED, Mode, time_plan
from sglang_ext.bench.workflows.record import WorkflowRecord
from sglang_ext.bench.workload.arrivals import POISSON, read_trace
from sglang_ext.bench.workload.items import NO_FOLDER
from sglang_ext.bench.workload.workloads import WORKLOADS
from sglang_ext.commands.bench_html import HTML_OPTION, check_html, write_html
from sglang_ext.commands.bench_progress import BenchProgress
from sglang_ext.commands.bench_record_file import READ_OPTION, read_record
from sglang_ext.commands.bench_workflows_table import show
from sglang_ext.commands.failures import answer_sigterm, reported
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.commands.options import (
    arrivals_option,
    chat_option,
    every_arm_option,
    in_flight_option,
    json_option,
    model_option,
    tbt_option,
    ttft_option,
    workloads_option,
)
from sglang_ext.commands.sglang_flags import check_flags
from sglang_ext.commands.table_console import table_console
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.policies import policy_names
from sglang_ext.settings import EngineSettings

_WIDTH = 150
_IN_FLIGHT = 4
# Flags that make the difference between the arms, or that the step recorder relies on.
_OWN_FLAGS = (
    "chunked_prefill_size",
    "prefill_decode_interval",
    "schedule_policy",
    "disable_radix_cache",
)


@click.command("workflows")
@click.argument("flags", metavar="[-- SGLANG FLAGS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--quick", "mode", flag_value="quick", default=True, help="A few arms, one load; indicative. The default."
)
@click.option("--screen", "mode", flag_value="screen", help="Every stock setting with both clients, once per workload.")
@click.option("--full", "mode", flag_value="full", help="The screen, then Grape and what it left at several loads.")
@click.option("--workload", "workloads", type=click.Choice(list(WORKLOADS)), multiple=True, help="These only.")
@workloads_option
@chat_option
@click.option("--load", "loads", multiple=True, metavar="RATE", help=f"Runs per second, or {', '.join(NAMED)}.")
@in_flight_option
@arrivals_option
@click.option("--policy", metavar="NAME", help=f"Grape's: {', '.join(policy_names())}. [the engine's setting]")
@click.option(
    "--arm", "arms", multiple=True, metavar="ARM", help="grape, grape-PART, mixed-128/prewarm, ablations, ..."
)
@click.option("--repetitions", type=click.IntRange(min=1), metavar="N", help="Of each cell.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="In which the runs of a cell arrive.")
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), metavar="N", help="What would end later is not begun."
)
@click.option("--natural-stops", is_flag=True, help="The model ends its outputs; else all arms have equal lengths.")
@ttft_option
@tbt_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Takes each finished cell; the same command goes on from there.",
)
@model_option
@every_arm_option
@json_option
@click.option("--html", **HTML_OPTION)
@click.option("--read", **READ_OPTION)
def bench_workflows(as_json: bool, every_arm: bool, html: Path | None, read: Path | None, **options: Any) -> None:
    """Measure whole workflows under load: Grape beside stock SGLang's settings with two clients.

    Service levels are in unloaded decode steps. SGLang's own flags stand behind -- and go to every engine.

    Exit codes: 0 measured, whatever was found; 2 wrong usage or input, 3 engine, 130 Ctrl-C.
    """
    answer_sigterm()
    with reported():
        check_html(html)
        record = _measure(**options) if read is None else read_record(read, WorkflowRecord)
        if html is not None:
            write_html(html, workflow_report(record))
    if as_json:
        click.echo(record.model_dump_json(indent=1))
    else:
        show(record, table_console(_WIDTH), every_arm)
    raise SystemExit(ExitCode.OK)


def _measure(
    flags: tuple[str, ...],
    mode: str,
    workloads: tuple[str, ...],
    folder: Path | None,
    chat: float,
    loads: tuple[str, ...],
    in_flight: int | None,
    arrivals: Path | None,
    policy: str | None,
    arms: tuple[str, ...],
    repetitions: int | None,
    seconds: float | None,
    minutes: float | None,
    natural_stops: bool,
    ttft: float,
    tbt: float,
    output: Path | None,
    model: str | None,
) -> WorkflowRecord:
    check_flags(flags)
    check_loads(in_flight, loads, NAMED)
    chosen = MODES[mode]
    names = ArmNames(policy or EngineSettings.from_environment().policy, ttft, tbt)
    choice = _choice(chosen, names, workloads, loads, in_flight, arms, repetitions)
    stamps = None if arrivals is None else read_trace(arrivals)
    console = Console(stderr=True)
    model = model or str(fetch_embedded_model(console))
    # SGLang's own modules take seconds.
    from sglang_ext.bench.engine_setup import EngineSetup
    from sglang_ext.bench.workflows.bench import WorkflowBench
    from sglang_ext.bench.workflows.prepared import RunSource
    from sglang_ext.bench.workflows.session import Session
    from sglang_ext.bench.workflows.store import CellStore
    from sglang_ext.driver.tokenizer_folder import tokenizer_folder

    setup = EngineSetup(model, flags, _OWN_FLAGS)
    tokenizer = tokenizer_folder(model, instead="Name a folder with the model and its tokenizer with --model.")
    seconds = seconds or chosen.seconds
    limit_s = chosen.limit_s if minutes is None else 60 * minutes
    settings = {
        "model": model,
        "flags": list(flags),
        "inputs": str(folder or NO_FOLDER),
        "chat": chat,
        "arrivals": str(arrivals or POISSON),
        "policy": names.policy,
        "ttft_steps": ttft,
        "tbt_steps": tbt,
        "seconds": seconds,
        "in_flight": in_flight or _IN_FLIGHT,
        "natural_stops": natural_stops,
    }
    with ExitStack() as stack:
        kept = output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grape-bench-cells-")))
        store = CellStore(kept, settings | {"versions": versions()})
        progress = stack.enter_context(BenchProgress(console, "cells"))
        bench = WorkflowBench(
            setup=setup,
            source=RunSource(tokenizer, folder, chat, stamps, not natural_stops),
            store=store,
            default=names.default().engine,
            seconds=seconds,
            ttft_steps=ttft,
            tbt_steps=tbt,
            in_flight=in_flight or _IN_FLIGHT,
            limit_s=limit_s,
            progress=progress,
        )
        _show_plan(choice, seconds, bench.calibrated, limit_s, console)
        return Session(bench, choice, model, settings | {"repetitions": choice.repetitions}).run()


def _choice(
    mode: Mode,
    names: ArmNames,
    workloads: tuple[str, ...],
    loads: tuple[str, ...],
    in_flight: int | None,
    arms: tuple[str, ...],
    repetitions: int | None,
) -> Choice:
    if arms and mode.name == "screen":
        raise InputError("--screen tries every stock setting; leave --arm out")
    if mode.name == "quick":
        arms = tuple(arm.name for arm in names.arms(arms or QUICK))
    return Choice(
        mode=mode,
        names=names,
        workloads=tuple(dict.fromkeys(workloads)) or mode.workloads,
        loads=(CLOSED,) if in_flight else tuple(dict.fromkeys(loads)) or mode.loads,
        repetitions=repetitions or mode.repetitions,
        arms=arms,
    )


def _show_plan(choice: Choice, seconds: float, calibrated: bool, limit_s: float, console: Console) -> None:
    plan = time_plan(choice.all_stages(), seconds, calibrated)
    for what, takes in plan:
        console.print(f"{takes / 60:5.1f} min  {what}", highlight=False)
    total = sum(takes for _, takes in plan)
    console.print(
        f"{total / 60:5.1f} min  in all, about; what is not begun after {limit_s / 60:g} min is left out",
        highlight=False,
    )
