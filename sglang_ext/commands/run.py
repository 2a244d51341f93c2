"""`grape run`: run a workflow on SGLang."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from grape_dsl.cli import ExitCode
from rich.console import Console

from grape_dsl.compiler import CompiledWorkflow
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from sglang_ext.commands.program import load_program
from sglang_ext.commands.run_output import JsonOutput, ListedOutput, RunOutput, StreamedOutput
from sglang_ext.commands.run_progress import RunProgress
from sglang_ext.commands.run_session import RunSession
from sglang_ext.commands.startup import fetch_embedded_model, started
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.engine_log import EngineLog
from sglang_ext.driver.errors import EngineError, InputError
from sglang_ext.driver.inputs import complete_inputs, read_objects, read_options
from sglang_ext.driver.run_factory import Streaming, check_program
from sglang_ext.driver.timeline import Timeline
from sglang_ext.embedded_model import EmbeddedModelError

INTERRUPTED = 130
TERMINATED = 143


def run(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A .flow program, - for standard input, or FILE.py, FILE.py:NAME, MODULE:NAME with a workflow object.",
        ),
    ],
    flags: Annotated[
        list[str] | None, typer.Argument(metavar="[-- SGLANG FLAGS]", help="SGLang's own flags, behind --.")
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input; NAME=@FILE reads it from a file."),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Inputs of one run (.json with an object) or of many (.json with a list, .jsonl, - for JSON lines on "
            "standard input); --input adds to each.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="How many runs at once.")] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record per run, each on a line.")] = False,
    progress: Annotated[bool, typer.Option("--progress", help="Show every task's state.")] = False,
    timeline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a trace of the runs for ui.perfetto.dev.")
    ] = None,
    no_streaming: Annotated[
        bool, typer.Option("--no-streaming", help="Submit a task only when its inputs are complete.")
    ] = False,
    edge_weight: Annotated[
        int, typer.Option(min=1, metavar="N", help="Tokens per chunk of a streamed output.")
    ] = DEFAULT_EDGE_WEIGHT,
    timeout: Annotated[float | None, typer.Option(min=0, metavar="S", help="Limit of each run in seconds.")] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A model folder or a Hugging Face name; without it the embedded model."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A running SGLang server; its API key is taken from GRAPE_API_KEY."),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(metavar="PATH", help="A folder with the tokenizer, if it does not lie with the model.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show SGLang's log.")] = False,
) -> None:
    """Run a workflow.

    Tokens of the OutputVars appear as they come. A task that gives no max_tokens writes at most 256; what else it
    does not give is SGLang's default (temperature 1, top_p 1).

    Exit codes: 0 done, 1 the program has errors or a run failed, 2 wrong usage or input, 3 engine, 130 Ctrl-C.
    """
    signal.signal(signal.SIGTERM, _terminated)
    log = None if url else EngineLog(verbose)
    try:
        if file == "-" and inputs == "-":
            raise InputError("standard input can hold the program or the inputs, not both")
        program = check_program(load_program(file, edge_weight))
        values = _inputs(program, input or [], inputs)
        engine = _engine(model, url, tokenizer, no_streaming, log, _flags(flags))
        with started(engine, log):
            # A table that is drawn anew and running text do not share a terminal.
            held = io.StringIO() if progress and sys.stdout.isatty() else None
            output = _output(program, as_json, inputs is not None and len(values) != 1, held or sys.stdout)
            failed = _execute(engine, program, values, jobs, timeout, output, progress, timeline)
            if held is not None:
                sys.stdout.write(held.getvalue())
    except InputError as error:
        raise _stop(str(error), ExitCode.USAGE) from None
    except EmbeddedModelError as error:
        raise _stop(str(error), ExitCode.ENGINE) from None
    except EngineError as error:
        if error.log_tail:
            typer.echo(error.log_tail, err=True)
        raise _stop(str(error), ExitCode.ENGINE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if log is not None:
            log.close()
    raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)


def _inputs(program: CompiledWorkflow, options: list[str], file: str | None) -> list[dict[str, str]]:
    """The inputs of every run, complete."""
    common = read_options(options)
    if file is None:
        return [complete_inputs(program.workflow, common)]
    return [complete_inputs(program.workflow, {**own, **common}, where) for where, own in read_objects(file, sys.stdin)]


def _flags(flags: list[str] | None) -> dict[str, Any]:
    if not flags:
        return {}
    if not flags[0].startswith("-"):
        raise InputError(f"unexpected argument {flags[0]!r}; SGLang's own flags stand behind --")
    from sglang_ext.driver.engine_arguments import parse_flags

    return parse_flags(flags)


def _engine(
    model: str | None,
    url: str | None,
    tokenizer: str | None,
    no_streaming: bool,
    log: EngineLog | None,
    settings: dict[str, Any],
) -> Engine:
    """The engine, not started yet."""
    model = model or settings.pop("model_path", None)
    if model is None and url is None:
        model = fetch_embedded_model(Console(stderr=True))
    streaming: Streaming | None = "off" if no_streaming else None
    return Engine(model, url=url, tokenizer=tokenizer, streaming=streaming, log=log, **settings)


def _output(program: CompiledWorkflow, as_json: bool, many: bool, out: IO[str]) -> RunOutput:
    if as_json:
        return JsonOutput(out)
    return ListedOutput(program.workflow, out) if many else StreamedOutput(program.workflow, out)


def _execute(
    engine: Engine,
    program: CompiledWorkflow,
    values: list[dict[str, str]],
    jobs: int,
    timeout: float | None,
    output: RunOutput,
    progress: bool,
    timeline: Path | None,
) -> bool:
    """Run all; returns whether one failed."""
    trace = Timeline()
    session = RunSession(engine, program, jobs, timeout, output, trace)
    if progress:
        with RunProgress(Console(stderr=True)) as shown:
            session.listen(shown.take)
            asyncio.run(session.run_all(values))
    else:
        asyncio.run(session.run_all(values))
    if timeline is not None:
        try:
            timeline.write_text(json.dumps(trace.trace()), encoding="utf-8")
        except OSError as error:
            raise InputError(f"--timeline: cannot write {timeline}: {error.strerror}") from error
    return session.failed


def _stop(message: str, code: ExitCode) -> typer.Exit:
    for line in message.splitlines():
        typer.echo(f"error: {line}", err=True)
    return typer.Exit(code)


def _terminated(*_: object) -> None:
    """End as after Ctrl-C: requests aborted, processes ended."""
    os.kill(os.getpid(), signal.SIGINT)
