"""Making the embedded model at the terminal, with a progress bar."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from sglang_ext import embedded_model
from sglang_ext.embedded_model import Step

_LABELS = {
    Step.WAIT: "waiting for another process that makes it",
    Step.DOWNLOAD: "fetching the embedded model",
    Step.CONVERT: "converting it",
    Step.CHECK: "checking it",
}


def fetch_embedded_model(console: Console, *, thorough: bool = False) -> Path:
    """The embedded model's folder. If it has to be made, `console` shows the progress and says where it went.

    With `thorough` a folder that is there is checked and, if damaged, made again. Raises `EmbeddedModelError`.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, console=console, transient=True) as bars:
        rows: dict[Step, TaskID] = {}

        def show(step: Step, done: int, total: int) -> None:
            if step not in rows:
                rows[step] = bars.add_task(_LABELS[step], total=total or None)
                if not console.is_terminal:
                    console.print(f"{_LABELS[step]} ...")
            bars.update(rows[step], completed=done)

        folder = embedded_model.ensure(show, thorough=thorough)
    if Step.CONVERT in rows:
        console.print(f"the embedded model is in {folder}", highlight=False, soft_wrap=True)
    return folder
