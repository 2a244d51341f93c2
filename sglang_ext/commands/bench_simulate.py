"""`grape bench simulate`: policies and stock settings over a simulated engine."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from grape_dsl.cli import ExitCode
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.report.simulated_report import simulated_report
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.comparison import SimulatedComparison
from sglang_ext.bench.simulation.engine import SimulationError
from sglang_ext.bench.simulation.loads import NAMED, busy, check_loads, knee, number
from sglang_ext.bench.simulation.machine import Machine, Overlap
from sglang_ext.bench.simulation.record import SimulationRecord
from sglang_ext.bench.simulation.rooflines import machine, machine_names, measured
from sglang_ext.bench.workload.arrivals import POISSON, Arrivals, Poisson, Replayed, read_trace
from sglang_ext.bench.workload.counting import estimate, tokenizer_count
from sglang_ext.bench.workload.items import NO_FOLDER, Items
from sglang_ext.bench.workload.job import Job
from sglang_ext.bench.workload.jobs import JobSource
from sglang_ext.bench.workload.workloads import WORKLOADS, find
from sglang_ext.commands.bench_html import HTML_OPTION, check_html, write_html
from sglang_ext.commands.bench_record_file import read_record
from sglang_ext.commands.bench_simulate_arms import policy_arms, stock_arms
from sglang_ext.commands.bench_simulate_table import show
from sglang_ext.commands.failures import reported
from sglang_ext.commands.options import (
    arrivals_option,
    chat_option,
    every_arm_option,
    in_flight_option,
    json_option,
    tbt_option,
    ttft_option,
    workloads_option,
)
from sglang_ext.commands.table_console import table_console
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.configuration import EVICTION_ORDERS
from sglang_ext.policy.policies import policy_names
from sglang_ext.settings import Streaming

_WIDTH = 150
# In a closed loop arrivals have no meaning, and `--runs` says how many there are.
_CLOSED_RATE = 1e-6


@click.command("simulate")
@click.option("--workload", type=click.Choice(list(WORKLOADS)), default="search", show_default=True)
@workloads_option
@chat_option
@click.option("--load", "loads", multiple=True, metavar="RATE", help=f"Runs per second, {' or '.join(NAMED)}. [knee]")
@in_flight_option
@arrivals_option
@click.option("--device", default="h200-8b", show_default=True, metavar="NAME", help=", ".join(machine_names()))
@click.option(
    "--profile",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A measured cost model in place of the device's.",
)
@click.option("--overlap", type=click.Choice([o.value for o in Overlap]), help="How the loop runs beside the steps.")
@click.option("--kv", "kv_tokens", type=click.IntRange(min=1), metavar="N", help="Tokens of KV in all. [the device's]")
@click.option("--policy", "policies", multiple=True, metavar="NAME", help=f"{', '.join(policy_names())}. [deadline]")
@click.option(
    "--policy-off", "off", multiple=True, metavar="PART", help="Each policy also without this part (A,B: both)."
)
@click.option(
    "--eviction",
    "evictions",
    type=click.Choice(EVICTION_ORDERS),
    multiple=True,
    help="Each policy with this order of who gives KV back first. [distance]",
)
@click.option(
    "--streaming", type=click.Choice([mode.value for mode in Streaming]), multiple=True, help="Of each policy. [on]"
)
@click.option(
    "--edge-weight",
    type=click.IntRange(min=1),
    default=DEFAULT_EDGE_WEIGHT,
    show_default=True,
    metavar="N",
    help="The programs': tokens that make a streamed chunk at most.",
)
@click.option("--arm", "arms", multiple=True, metavar="ARM", help="Stock: default, mixed-128/prewarm, ...; all. [all]")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, metavar="N", help="Repetitions.")
@click.option(
    "--runs", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="Of each, at least."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="That the arrivals of each last, at least: an overload needs time to show.",
)
@ttft_option
@tbt_option
@click.option(
    "--tokenizer",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Counts the tokens; without it they are estimated.",
)
@every_arm_option
@json_option
@click.option("--html", **HTML_OPTION)
@click.option(
    "--read",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Show a record that was printed with --json; nothing is simulated.",
)
def bench_simulate(as_json: bool, every_arm: bool, html: Path | None, read: Path | None, **options: Any) -> None:
    """Simulate workflows under policies and stock SGLang's settings. No engine is started; every figure is simulated.

    The policies are the ones that the engine runs. Service levels are in unloaded decode steps.

    Exit codes: 0 simulated, whatever was found; 2 wrong usage or input.
    """
    with reported():
        check_html(html)
        record = _simulate(**options) if read is None else read_record(read, SimulationRecord)
        if html is not None:
            write_html(html, simulated_report(record))
    if as_json:
        click.echo(record.model_dump_json(indent=1))
    else:
        show(record, table_console(_WIDTH), every_arm)
    raise SystemExit(ExitCode.OK)


def _simulate(
    workload: str,
    folder: Path | None,
    chat: float,
    loads: tuple[str, ...],
    in_flight: int | None,
    arrivals: Path | None,
    device: str,
    profile: Path | None,
    overlap: str | None,
    kv_tokens: int | None,
    policies: tuple[str, ...],
    off: tuple[str, ...],
    evictions: tuple[str, ...],
    streaming: tuple[str, ...],
    edge_weight: int,
    arms: tuple[str, ...],
    seeds: int,
    runs: int,
    seconds: float,
    ttft: float,
    tbt: float,
    tokenizer: Path | None,
) -> SimulationRecord:
    check_loads(in_flight, loads, NAMED)
    target = _machine(device, profile, overlap, kv_tokens)
    slo = Slo(ttft * target.unloaded_s, tbt * target.unloaded_s)
    chosen = [
        *stock_arms(arms),
        *policy_arms(target, policies or ("deadline",), off, evictions, streaming, edge_weight),
    ]
    count = estimate if tokenizer is None else tokenizer_count(tokenizer)
    source = JobSource(find(workload), Items(folder), chat, count=count)
    stamps = None if arrivals is None else read_trace(arrivals)

    def make(rate: float) -> list[list[Job]]:
        kind: Arrivals = Poisson(rate) if stamps is None else Replayed(stamps, rate)
        number = max(runs, round(rate * seconds))
        return [source.jobs(number, kind, seed) for seed in range(1, seeds + 1)]

    def rate_of(load: str) -> float:
        if load == "knee":
            return knee(make, target, slo)
        return busy(make, target, slo) if load == "busy" else number(load, NAMED)

    results: list[LoadResult] = []
    named = loads or (("closed",) if in_flight else ("knee",))
    with Progress(console=Console(stderr=True), transient=True) as progress:
        row = progress.add_task("loads", total=len(named) * len(chosen) * seeds)
        for load in named:
            try:
                rate = None if in_flight else rate_of(load)
                comparison = SimulatedComparison(
                    machine=target,
                    slo=slo,
                    arms=chosen,
                    repetitions=make(rate or _CLOSED_RATE),
                    in_flight=in_flight,
                    advance=lambda arm: progress.update(row, advance=1, description=arm),
                )
                results.append(comparison.run(load, rate))
            except SimulationError as error:
                raise InputError(
                    f"{target.name} cannot run {workload!r} at this load: {error}; give it more with --kv"
                ) from None
    settings = {
        "workload": workload,
        "inputs": str(folder or NO_FOLDER),
        "chat": chat,
        "seeds": seeds,
        "runs": runs,
        "seconds": seconds,
    }
    settings |= {"arrivals": str(arrivals or POISSON), "in_flight": in_flight, "tokens": count.__name__}
    return SimulationRecord(
        machine=asdict(target),
        unloaded_s=target.unloaded_s,
        ttft_s=slo.ttft_s,
        tbt_s=slo.tbt_s,
        settings=settings,
        loads=results,
    )


def _machine(device: str, profile: Path | None, overlap: str | None, kv_tokens: int | None) -> Machine:
    found = machine(device)
    if profile is not None:
        found = measured(profile, found)
    if kv_tokens is not None:
        found = replace(found, kv_tokens=kv_tokens)
    return found if overlap is None else replace(found, overlap=Overlap(overlap))
