"""`grape bench gap`: the gap at a task switch."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from grape_dsl.cli import ExitCode
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from sglang_ext.bench.arms import ARMS, UNLOADED, Arm
from sglang_ext.bench.chain import ChainShape
from sglang_ext.bench.gap_record import GapRecord
from sglang_ext.commands.bench_gap_table import show
from sglang_ext.commands.bench_progress import BenchProgress
from sglang_ext.commands.bench_record_file import READ_OPTION, read_record
from sglang_ext.commands.failures import answer_sigterm, reported
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.commands.options import json_option, model_option
from sglang_ext.commands.sglang_flags import check_flags
from sglang_ext.commands.table_console import table_console
from sglang_ext.driver.errors import InputError

_KNOWN, _OUTPUT, _REPETITIONS = (0, 256, 1024), (32, 256), 10
_QUICK_KNOWN, _QUICK_OUTPUT, _QUICK_REPETITIONS = (0, 1024), (32,), 3
_WIDTH = 110
_ARMS = {arm.name: arm for arm in ARMS}


@click.command("gap")
@click.argument("flags", metavar="[-- SGLANG FLAGS]", nargs=-1, type=click.UNPROCESSED)
@click.option("--quick", is_flag=True, help="Three repetitions and a small grid, some minutes.")
@click.option("--repetitions", type=click.IntRange(min=1), metavar="N", help=f"By default {_REPETITIONS}.")
@click.option("--known", type=click.IntRange(min=0), multiple=True, metavar="N", help="Tokens of B's known text.")
@click.option("--streamed", type=click.IntRange(min=2), multiple=True, metavar="N", help="Tokens of A's output.")
@click.option("--arm", "arms", type=click.Choice(list(_ARMS)), multiple=True, help="Measure these only.")
@click.option(
    "--edge-weight",
    type=click.IntRange(min=1),
    default=DEFAULT_EDGE_WEIGHT,
    show_default=True,
    metavar="N",
    help="Tokens per streamed chunk.",
)
@model_option
@json_option
@click.option("--read", **READ_OPTION)
def bench_gap(
    flags: tuple[str, ...],
    quick: bool,
    repetitions: int | None,
    known: tuple[int, ...],
    streamed: tuple[int, ...],
    arms: tuple[str, ...],
    edge_weight: int,
    model: str | None,
    as_json: bool,
    read: Path | None,
) -> None:
    """Measure the gap at a task switch: from the last token of task A to the first of B, whose prompt holds A's output.

    Grape with streaming on, static and off, and two clients of stock SGLang, in turns on the same machine. SGLang's
    own flags stand behind -- and go to every engine.

    Exit codes: 0 measured, whatever was found; 2 wrong usage or input, 3 engine, 130 Ctrl-C.
    """
    answer_sigterm()
    with reported():
        if read is not None:
            record = read_record(read, GapRecord)
        else:
            chosen = _chosen(arms)
            known = known or (_QUICK_KNOWN if quick else _KNOWN)
            streamed = streamed or (_QUICK_OUTPUT if quick else _OUTPUT)
            shapes = [ChainShape(k, s) for k in dict.fromkeys(known) for s in dict.fromkeys(streamed)]
            repetitions = repetitions or (_QUICK_REPETITIONS if quick else _REPETITIONS)
            record = _measure(model, flags, chosen, shapes, repetitions, edge_weight)
    if as_json:
        click.echo(record.model_dump_json(indent=1))
    else:
        show(record, table_console(_WIDTH))
    raise SystemExit(ExitCode.OK)


def _chosen(names: tuple[str, ...]) -> tuple[Arm, ...]:
    if names and not set(names) & set(UNLOADED):
        raise InputError(f"the decode step is measured in one of the arms {', '.join(UNLOADED)}; add one with --arm")
    return tuple(arm for arm in ARMS if not names or arm.name in names)


def _measure(
    model: str | None,
    flags: tuple[str, ...],
    arms: tuple[Arm, ...],
    shapes: list[ChainShape],
    repetitions: int,
    edge_weight: int,
) -> GapRecord:
    check_flags(flags)
    console = Console(stderr=True)
    if model is None:
        model = str(fetch_embedded_model(console))
    # SGLang's own modules take seconds.
    from sglang_ext.bench.engine_setup import EngineSetup
    from sglang_ext.bench.gap_bench import GapBench

    bench = GapBench(EngineSetup(model, flags), arms, shapes, repetitions, edge_weight)
    with BenchProgress(console, "chains") as progress:
        return bench.run(progress)
