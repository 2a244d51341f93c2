"""How far `grape bench gap` is, on standard error."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn


class GapProgress:
    """On a terminal a bar, else a line per stage."""

    def __init__(self, console: Console) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._console = console
        self._bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._row = self._bars.add_task("starting", total=None)
        self._stage = ""

    def __enter__(self) -> GapProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def starting(self, engine: str) -> None:
        self._enter(f"starting SGLang ({engine})")

    def measuring(self, chains: int) -> None:
        self._enter(f"measuring {chains} chains")
        self._bars.reset(self._row, total=chains)

    def measured(self, what: str) -> None:
        self._bars.update(self._row, advance=1, description=what)

    def _enter(self, stage: str) -> None:
        if stage == self._stage:
            return
        self._stage = stage
        self._bars.update(self._row, description=stage)
        if not self._console.is_terminal:
            self._console.print(f"{stage} ...")
