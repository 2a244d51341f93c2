"""`grape compile`: print the micro-task graph of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from grape_dsl.cli.program_file import compile_program
from grape_dsl.cli.python_program import ProgramError
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT

if TYPE_CHECKING:
    from grape_dsl.early_share import Stats

FORMATS = ("text", "json", "mermaid", "dot")


@click.command("compile")
@click.argument("file", metavar="FILE")
@click.option(
    "--format", "-f", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="How to print it."
)
@click.option(
    "--stats", is_flag=True, help="Add counts, depth, how much of each prompt can be prefilled early, what to move."
)
@click.option(
    "--edge-weight",
    type=click.IntRange(min=1),
    metavar="N",
    default=DEFAULT_EDGE_WEIGHT,
    show_default=True,
    help="Tokens per chunk of a streamed output.",
)
@click.option(
    "--tokenizer",
    metavar="PATH",
    help="Show sizes in tokens of the tokenizer in this folder, or of the embedded model (`embedded`). "
    "Without it they are characters.",
)
@click.option("--json-diagnostics", is_flag=True, help="Write diagnostics to standard error as JSON.")
def compile_command(
    file: str, form: str, stats: bool, edge_weight: int, tokenizer: str | None, json_diagnostics: bool
) -> None:
    """Print the micro-task graph of a program.

    FILE is a .flow program, - reads it from standard input; or a Python file or module that holds a workflow, with
    :NAME behind it where it holds several. Errors and warnings go to standard error.

    Exit codes: 0 printed, 1 the program has errors, 2 wrong usage or a file that cannot be read, 3 missing package.
    """
    if stats and form not in ("text", "json"):
        raise click.UsageError(f"--stats goes with --format text or json, not {form}")
    try:
        if tokenizer is None:
            graph = compile_program(file, edge_weight=edge_weight, as_json=json_diagnostics).graph
        else:
            graph = _in_tokens(file, edge_weight, tokenizer, json_diagnostics)
    except ProgramError as error:
        raise click.UsageError(str(error)) from None
    figures = None
    if stats:
        from grape_dsl.early_share import stats_of

        figures = stats_of(graph)
    click.echo(_printed(graph, form, figures), nl=False)


def _in_tokens(file: str, edge_weight: int, tokenizer: str, as_json: bool) -> MicroTaskGraph:
    from grape_dsl.cli.counters import token_counter
    from grape_dsl.encoding import EncodingError

    counter = token_counter(tokenizer)
    try:
        return compile_program(file, edge_weight=edge_weight, counter=counter, as_json=as_json).graph
    except EncodingError as error:
        raise click.BadParameter(str(error), param_hint="--tokenizer") from None


def _printed(graph: MicroTaskGraph, form: str, stats: Stats | None) -> str:
    if form == "json":
        from grape_dsl.printing.json_form import to_json

        return to_json(graph, stats)
    if form == "mermaid":
        from grape_dsl.printing.diagram_forms import to_mermaid

        return to_mermaid(graph)
    if form == "dot":
        from grape_dsl.printing.diagram_forms import to_dot

        return to_dot(graph)
    from grape_dsl.printing.text_form import to_text

    if stats is None:
        return to_text(graph)
    from grape_dsl.printing.stats_form import stats_to_text

    return f"{to_text(graph)}\n{stats_to_text(stats, graph.unit)}"
