"""`grape model`: the embedded model, where it is and whether it is whole."""

from __future__ import annotations

import typer
from rich.console import Console

from grape_dsl.cli import ExitCode
from sglang_ext import embedded_model
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.embedded_model import EmbeddedModelError, State

app = typer.Typer(
    help="Show the embedded model, which is used when no --model is given.",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_STATES = {
    State.READY: "ready",
    State.ABSENT: "not fetched yet; `grape run` fetches it when it needs it, `grape model fetch` now",
    State.DAMAGED: "damaged; `grape model fetch` makes it again",
}


@app.callback(invoke_without_command=True)
def show(context: typer.Context) -> None:
    """Show the embedded model, which is used when no --model is given. Exit codes: 0 ready, 1 not."""
    if context.invoked_subcommand is not None:
        return
    state = embedded_model.state()
    typer.echo(f"model   {embedded_model.TITLE}")
    typer.echo(f"folder  {embedded_model.folder()}")
    typer.echo(f"state   {_STATES[state]}")
    raise typer.Exit(ExitCode.OK if state is State.READY else ExitCode.FAILED)


@app.command()
def fetch() -> None:
    """Fetch the model if it is missing or damaged, and print its folder. Exit codes: 0 ready, 3 it cannot be had."""
    try:
        folder = fetch_embedded_model(Console(stderr=True), thorough=True)
    except EmbeddedModelError as error:
        typer.echo(f"grape: {error}", err=True)
        raise typer.Exit(ExitCode.ENGINE) from None
    typer.echo(folder)


@app.command()
def path() -> None:
    """Print the model's folder, fetched or not."""
    typer.echo(embedded_model.folder())
