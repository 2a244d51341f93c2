"""`grape run`: run a workflow on SGLang."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click
from rich.console import Console

from grape_dsl.cli import ExitCode
from grape_dsl.cli.program_file import compile_program
from grape_dsl.cli.python_program import ProgramError
from grape_dsl.compiler import CompiledWorkflow
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from sglang_ext.commands.engine_profile import profile_line
from sglang_ext.commands.failures import answer_sigterm, reported, warn
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.commands.options import model_option
from sglang_ext.commands.run_output import JsonOutput, ListedOutput, RunOutput, StreamedOutput
from sglang_ext.commands.run_progress import RunProgress
from sglang_ext.commands.run_session import RunSession
from sglang_ext.commands.sglang_flags import check_flags
from sglang_ext.commands.startup import loading, started
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.engine_log import EngineLog
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.inputs import complete_inputs, read_objects, read_options
from sglang_ext.driver.plugin_proof import plugin_state
from sglang_ext.driver.run_factory import Streaming, check_program
from sglang_ext.driver.timeline import Timeline
from sglang_ext.settings import unknown_settings


@dataclass(frozen=True, slots=True)
class _Options:
    """The options as they were given; the command below explains them."""

    jobs: int
    as_json: bool
    progress: bool
    timeline: Path | None
    no_streaming: bool
    policy: str | None
    policy_off: str | None
    timeout: float | None
    model: str | None
    url: str | None
    tokenizer: str | None
    verbose: bool


@click.command("run")
@click.argument("file", metavar="FILE")
@click.argument("flags", metavar="[-- SGLANG FLAGS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--input", "-i", "input_", metavar="NAME=VALUE", multiple=True, help="An input; NAME=@FILE reads it from a file."
)
@click.option(
    "--inputs",
    metavar="FILE",
    help="Inputs of one run (.json with an object) or of many (.json with a list, .jsonl, or - for JSON lines on "
    "standard input). --input adds to each.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=8, show_default=True, metavar="N", help="How many runs at once."
)
@click.option("--json", "as_json", is_flag=True, help="Print a record per run, each on a line.")
@click.option("--progress", is_flag=True, help="Show every task's state.")
@click.option("--timeline", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace for ui.perfetto.dev.")
@click.option("--no-streaming", is_flag=True, help="Submit a task only when its inputs are complete.")
@click.option(
    "--edge-weight",
    type=click.IntRange(min=1),
    default=DEFAULT_EDGE_WEIGHT,
    show_default=True,
    metavar="N",
    help="Tokens per chunk of a streamed output.",
)
@click.option("--policy", metavar="NAME", help="The engine's scheduling policy: budget, deadline, paper or stock.")
@click.option("--policy-off", metavar="A,B", help="Parts of the policy that are switched off.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Limit of each run in seconds."
)
@model_option
@click.option("--url", metavar="URL", help="A running SGLang server; its API key is read from GRAPE_API_KEY.")
@click.option("--tokenizer", metavar="PATH", help="A folder with the tokenizer, if it does not lie with the model.")
@click.option("--verbose", "-v", is_flag=True, help="Show SGLang's log.")
def run(
    file: str, flags: tuple[str, ...], input_: tuple[str, ...], inputs: str | None, edge_weight: int, **options: Any
) -> None:
    """Run the workflow in FILE and print its outputs as they come.

    FILE is a .flow program (- reads it from standard input), or FILE.py, FILE.py:NAME or MODULE:NAME with a workflow
    object. SGLang's own flags stand behind --.

    A task that gives no max_tokens writes at most 256; temperature and top_p that it does not give are 1.

    Exit codes: 0 done, 1 the program has errors or a run failed, 2 wrong usage or input, 3 engine, 130 Ctrl-C.
    """
    answer_sigterm()
    for unknown in unknown_settings():
        warn(unknown)
    with reported():
        if file == "-" and inputs == "-":
            raise InputError("standard input can hold the program or the inputs, not both")
        program = check_program(_compiled(file, edge_weight))
        values = _inputs(program, input_, inputs)
        failed = _run(program, values, inputs is not None and len(values) != 1, flags, _Options(**options))
    raise SystemExit(ExitCode.FAILED if failed else ExitCode.OK)


def _inputs(program: CompiledWorkflow, options: tuple[str, ...], file: str | None) -> list[dict[str, str]]:
    """The inputs of every run, complete."""
    common = read_options(options)
    if file is None:
        return [complete_inputs(program.workflow, common)]
    return [complete_inputs(program.workflow, {**own, **common}, where) for where, own in read_objects(file, sys.stdin)]


def _run(
    program: CompiledWorkflow, values: list[dict[str, str]], many: bool, flags: tuple[str, ...], options: _Options
) -> bool:
    """Start an engine and run all; returns whether a run failed."""
    log = None if options.url else EngineLog(options.verbose)
    try:
        engine = new_engine(options, log, _settings(flags, log))
        with started(engine, log):
            if options.verbose:
                click.echo(f"profile: {profile_line(plugin_state(engine.info.states))}", err=True)
            # A table that is drawn anew and running text do not share a terminal.
            held = io.StringIO() if options.progress and sys.stdout.isatty() else None
            failed = _execute(engine, program, values, _output(program, options, many, held or sys.stdout), options)
            if held is not None:
                sys.stdout.write(held.getvalue())
            return failed
    finally:
        if log is not None:
            log.close()


def _settings(flags: tuple[str, ...], log: EngineLog | None) -> dict[str, Any]:
    if not flags:
        return {}
    check_flags(flags)
    if log is None:
        raise InputError("a server is given by its URL, so SGLang's flags cannot be given too: they are the server's")
    with loading(log, "reading SGLang's flags"):
        from sglang_ext.driver.engine_arguments import parse_flags

        return parse_flags(flags)


def new_engine(options: _Options, log: EngineLog | None, settings: dict[str, Any]) -> Engine:
    """The engine that the options ask for, not started yet."""
    model = options.model or settings.pop("model_path", None)
    if model is None and options.url is None:
        model = str(fetch_embedded_model(Console(stderr=True)))
    streaming: Streaming | None = "off" if options.no_streaming else None
    return Engine(
        model,
        url=options.url,
        tokenizer=options.tokenizer,
        streaming=streaming,
        policy=options.policy,
        policy_off=options.policy_off,
        log=log,
        **settings,
    )


def _output(program: CompiledWorkflow, options: _Options, many: bool, out: IO[str]) -> RunOutput:
    if options.as_json:
        return JsonOutput(out)
    return ListedOutput(program.workflow, out) if many else StreamedOutput(program.workflow, out)


def _execute(
    engine: Engine, program: CompiledWorkflow, values: list[dict[str, str]], output: RunOutput, options: _Options
) -> bool:
    session = RunSession(engine, program, options.jobs, options.timeout, output)
    trace = Timeline()
    if options.timeline is not None:
        session.listen(trace.take)
    if options.progress:
        with RunProgress(Console(stderr=True)) as shown:
            session.listen(shown.take)
            asyncio.run(session.run_all(values))
    else:
        asyncio.run(session.run_all(values))
    if options.timeline is not None:
        try:
            options.timeline.write_text(json.dumps(trace.trace()), encoding="utf-8")
        except OSError as error:
            raise InputError(f"--timeline: cannot write {options.timeline}: {error.strerror}") from error
    return session.failed


def _compiled(file: str, edge_weight: int) -> CompiledWorkflow:
    try:
        return compile_program(file, edge_weight=edge_weight)
    except ProgramError as error:
        raise InputError(str(error)) from None
