"""`grape bench engine`: the CPU platform beside transformers and the machine's limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from grape_dsl.cli import ExitCode
from sglang_ext.bench.engine_arms import ABOUT, ENGINES, OWN_FLAGS, PLATFORM
from sglang_ext.bench.engine_record import EngineBenchRecord
from sglang_ext.bench.point import POINTS
from sglang_ext.bench.profile_record import ProfileRecord
from sglang_ext.commands.bench_engine_table import show
from sglang_ext.commands.bench_profile_table import show as show_profile
from sglang_ext.commands.bench_progress import BenchProgress
from sglang_ext.commands.bench_record_file import READ_OPTION, read_record
from sglang_ext.commands.failures import answer_sigterm, reported
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.commands.options import json_option, model_option
from sglang_ext.commands.sglang_flags import check_flags
from sglang_ext.commands.table_console import table_console
from sglang_ext.driver.errors import InputError

if TYPE_CHECKING:
    from sglang_ext.bench.engine_setup import EngineSetup

_REPETITIONS, _QUICK_REPETITIONS = 7, 3
_WIDTH = 110


@click.command("engine")
@click.argument("flags", metavar="[-- SGLANG FLAGS]", nargs=-1, type=click.UNPROCESSED)
@click.option("--quick", is_flag=True, help=f"{_QUICK_REPETITIONS} repetitions.")
@click.option("--repetitions", type=click.IntRange(min=1), metavar="N", help=f"By default {_REPETITIONS}.")
@click.option("--arm", "arms", type=click.Choice(list(ABOUT)), multiple=True, help="Measure these only.")
@click.option("--point", "labels", metavar="TEXT", multiple=True, help="Measure points with this in their name only.")
@model_option
@click.option("--profile", is_flag=True, help="Show where the time of a decode step goes, instead of the benchmark.")
@json_option
@click.option("--read", **READ_OPTION)
def bench_engine(
    flags: tuple[str, ...],
    quick: bool,
    repetitions: int | None,
    arms: tuple[str, ...],
    labels: tuple[str, ...],
    model: str | None,
    profile: bool,
    as_json: bool,
    read: Path | None,
) -> None:
    """Measure single steps of SGLang on Grape's CPU platform, and a load of 16 requests.

    Beside it SGLang with its own torch_native attention, transformers, and what the machine's memory and multipliers
    give at best, in turns. SGLang's own flags stand behind -- and go to both engines.

    Exit codes: 0 measured, whatever was found; 2 wrong usage or input, 3 engine, 130 Ctrl-C.
    """
    answer_sigterm()
    record: EngineBenchRecord | ProfileRecord
    with reported():
        if read is not None:
            record = read_record(read, ProfileRecord) if profile else read_record(read, EngineBenchRecord)
        elif profile:
            if quick or repetitions or labels:
                raise InputError("--profile takes neither --quick nor --repetitions nor --point")
            record = _profile(model, flags, arms)
        else:
            repetitions = repetitions or (_QUICK_REPETITIONS if quick else _REPETITIONS)
            record = _measure(model, flags, arms, labels, repetitions)
    if as_json:
        click.echo(record.model_dump_json(indent=1))
    else:
        _show(record)
    raise SystemExit(ExitCode.OK)


def _show(record: EngineBenchRecord | ProfileRecord) -> None:
    console = table_console(_WIDTH)
    if isinstance(record, ProfileRecord):
        show_profile(record, console)
    else:
        show(record, console)


def _measure(
    model: str | None, flags: tuple[str, ...], arms: tuple[str, ...], labels: tuple[str, ...], repetitions: int
) -> EngineBenchRecord:
    if arms and not set(arms) & set(ENGINES):
        raise InputError(f"dtype and threads are those of an engine: add one of {', '.join(ENGINES)} with --arm")
    points = [point for point in POINTS if not labels or any(label in point.label for label in labels)]
    if not points:
        known = "; ".join(point.label for point in POINTS)
        raise InputError(f"no point has {' or '.join(map(repr, labels))} in its name; there are: {known}")
    console = Console(stderr=True)
    setup = _setup(model, flags, console)
    # SGLang's and transformers' own modules take seconds.
    from sglang_ext.bench.engine_bench import EngineBench

    bench = EngineBench(setup, [name for name in ABOUT if not arms or name in arms], points, repetitions)
    with BenchProgress(console, "points") as progress:
        return bench.run(progress)


def _profile(model: str | None, flags: tuple[str, ...], arms: tuple[str, ...]) -> ProfileRecord:
    name, *more = dict.fromkeys(arms or [PLATFORM])
    if more or name not in ENGINES:
        raise InputError(f"--profile looks into one engine: --arm {' or '.join(ENGINES)}, not {', '.join(arms)}")
    console = Console(stderr=True)
    setup = _setup(model, flags, console)
    from sglang_ext.bench.profile_bench import ProfileBench

    with BenchProgress(console, "sizes of batch") as progress:
        return ProfileBench(setup, ENGINES[name]).run(progress)


def _setup(model: str | None, flags: tuple[str, ...], console: Console) -> EngineSetup:
    check_flags(flags)
    if model is None:
        model = str(fetch_embedded_model(console))
    from sglang_ext.bench.engine_setup import EngineSetup

    setup = EngineSetup(model, flags, OWN_FLAGS)
    if not setup.on_cpu:
        raise InputError("this measures the platform for machines without an accelerator; SGLang finds one here")
    return setup
