"""`grape bench numerics`: what chunking and streaming do to outputs, beside what two plain chunkings do."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from grape_dsl.cli import ExitCode
from grape_dsl.encoding import ChatEncoder, EncodingError
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from sglang_ext.bench.numerics.arms import CHUNKS, DTYPES
from sglang_ext.bench.numerics.prompts import works
from sglang_ext.bench.numerics.record import NumericsRecord
from sglang_ext.bench.workload.items import NO_FOLDER
from sglang_ext.commands.bench_numerics_table import show
from sglang_ext.commands.bench_progress import BenchProgress
from sglang_ext.commands.bench_record_file import READ_OPTION, read_record
from sglang_ext.commands.failures import answer_sigterm, reported
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.commands.options import json_option, model_option, workloads_option
from sglang_ext.commands.sglang_flags import check_flags
from sglang_ext.commands.table_console import table_console
from sglang_ext.driver.errors import InputError

_PROMPTS, _QUICK_PROMPTS = 200, 20
# Two whole chunks and a rest.
_NOTE = 2 * DEFAULT_EDGE_WEIGHT + 4
_ANSWER = 8
_WIDTH = 150
# Flags that make the difference between the arms.
_OWN_FLAGS = ("dtype", "chunked_prefill_size", "disable_radix_cache", "prefill_max_requests")


@click.command("numerics")
@click.argument("flags", metavar="[-- SGLANG FLAGS]", nargs=-1, type=click.UNPROCESSED)
@click.option("--quick", is_flag=True, help=f"{_QUICK_PROMPTS} prompts.")
@click.option("--prompts", type=click.IntRange(min=1), metavar="N", help=f"By default {_PROMPTS}.")
@click.option("--dtype", "dtypes", type=click.Choice(DTYPES), multiple=True, help="This only.")
@workloads_option
@model_option
@json_option
@click.option("--read", **READ_OPTION)
def bench_numerics(
    flags: tuple[str, ...],
    quick: bool,
    prompts: int | None,
    dtypes: tuple[str, ...],
    folder: Path | None,
    model: str | None,
    as_json: bool,
    read: Path | None,
) -> None:
    """Compare outputs of the same prompts: in one pass, in chunks of two sizes, and streamed by Grape.

    SGLang's own flags stand behind -- and go to every engine.

    Exit codes: 0 measured, whatever was found; 2 wrong usage or input, 3 engine, 130 Ctrl-C.
    """
    answer_sigterm()
    with reported():
        if read is not None:
            record = read_record(read, NumericsRecord)
        else:
            number = prompts or (_QUICK_PROMPTS if quick else _PROMPTS)
            record = _measure(flags, number, tuple(dict.fromkeys(dtypes)) or DTYPES, folder, model)
    if as_json:
        click.echo(record.model_dump_json(indent=1))
    else:
        show(record, table_console(_WIDTH))
    raise SystemExit(ExitCode.OK)


def _measure(
    flags: tuple[str, ...], prompts: int, dtypes: tuple[str, ...], folder: Path | None, model: str | None
) -> NumericsRecord:
    check_flags(flags)
    console = Console(stderr=True)
    model = model or str(fetch_embedded_model(console))
    # SGLang's own modules take seconds.
    from sglang_ext.bench.engine_setup import EngineSetup
    from sglang_ext.bench.numerics.bench import NumericsBench
    from sglang_ext.driver.tokenizer_folder import tokenizer_folder

    setup = EngineSetup(model, flags, _OWN_FLAGS)
    tokenizer = tokenizer_folder(model, instead="Name a folder with the model and its tokenizer with --model.")
    try:
        encoder = ChatEncoder.from_folder(tokenizer)
    except EncodingError as error:
        raise InputError(str(error)) from error
    runs = works(prompts, folder, encoder, DEFAULT_EDGE_WEIGHT, _NOTE, _ANSWER)
    settings = {
        "prompts": prompts,
        "inputs": str(folder or NO_FOLDER),
        "streamed": _NOTE,
        "answer": _ANSWER,
        "edge_weight": DEFAULT_EDGE_WEIGHT,
        "chunks": list(CHUNKS),
        "flags": list(flags),
    }
    with BenchProgress(console, "prompts") as progress:
        return NumericsBench(setup, dtypes, runs, settings, progress).run()
