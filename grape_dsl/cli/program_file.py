"""Programs on the command line: compiled, or refused with diagnostics on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace

import click

from grape_dsl.cli import ExitCode
from grape_dsl.cli.python_program import python_workflow
from grape_dsl.compiler import CompiledWorkflow, compile
from grape_dsl.diagnostics import Diagnostic, DiagnosticError
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from grape_dsl.lowering.token_counter import TokenCounter
from grape_dsl.rendering import render, to_json
from grape_dsl.syntax import parse_text
from grape_dsl.syntax.source import decode_source, read_source


def compile_program(
    name: str,
    *,
    edge_weight: int = DEFAULT_EDGE_WEIGHT,
    counter: TokenCounter | None = None,
    as_json: bool = False,
) -> CompiledWorkflow:
    """Read and compile a program; warnings and errors go to standard error.

    Args:
        name: a `.flow` file, `-` for standard input, or what `python_workflow` takes.

    Raises:
        ProgramError: as `python_workflow`.
        SystemExit: with `ExitCode.FAILED` for a program with errors, `ExitCode.USAGE` for a file that cannot be read.
    """
    sources: dict[str | None, str] = {}
    diagnostics, refused = None, ExitCode.FAILED
    try:
        workflow = python_workflow(name)
        if workflow is None:
            refused = ExitCode.USAGE
            source = decode_source(sys.stdin.buffer.read(), "<stdin>") if name == "-" else read_source(name)
            refused = ExitCode.FAILED
            sources[source.file] = source.text
            loaded = parse_text(source.text, source.file)
            # Reading has already found what the compiler finds, and knows the places better.
            workflow, diagnostics = loaded.workflow, loaded.diagnostics
        compiled = compile(workflow, edge_weight=edge_weight, counter=counter)
    except DiagnosticError as error:
        show_diagnostics(error.diagnostics, sources, as_json=as_json)
        raise SystemExit(refused) from None
    if diagnostics is not None:
        compiled = replace(compiled, diagnostics=diagnostics)
    show_diagnostics(compiled.diagnostics, sources, as_json=as_json)
    return compiled


def show_diagnostics(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str | None, str], *, as_json: bool = False
) -> None:
    """Write diagnostics to standard error, as text or as one JSON list; nothing where there are none."""
    found = list(diagnostics)
    if not found:
        return
    if as_json:
        text = json.dumps(to_json(found), ensure_ascii=False, indent=2) + "\n"
    else:
        text = render(found, sources, color=sys.stderr.isatty() and not os.environ.get("NO_COLOR"))
    click.echo(text.rstrip("\n"), err=True)
