"""How far a benchmark of the runtime is, on standard error."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

# Between two lines where there is no terminal.
_LINE_SECONDS = 30.0


class BenchProgress:
    """On a terminal a bar, else a line per stage and every half minute.

    Args:
        unit: what is measured one after the other, in the plural.
    """

    def __init__(self, console: Console, unit: str) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._console = console
        self._unit = unit
        self._bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._row = self._bars.add_task("starting", total=None)
        self._stage = ""
        self._begin = time.monotonic()
        self._said = self._begin

    def __enter__(self) -> BenchProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def starting(self, engine: str) -> None:
        self._enter(f"starting SGLang ({engine})")

    def measuring(self, turns: int) -> None:
        self._enter(f"measuring {turns} {self._unit}")
        self._bars.reset(self._row, total=turns)

    def measured(self, what: str) -> None:
        self._bars.update(self._row, advance=1, description=what)
        if time.monotonic() - self._said > _LINE_SECONDS:
            self._say(what)

    def _enter(self, stage: str) -> None:
        if stage == self._stage:
            return
        self._stage = stage
        self._bars.update(self._row, description=stage)
        self._say(f"{stage} ...")

    def _say(self, line: str) -> None:
        self._said = time.monotonic()
        if not self._console.is_terminal:
            self._console.print(f"{self._said - self._begin:5.0f} s  {line}", highlight=False)
