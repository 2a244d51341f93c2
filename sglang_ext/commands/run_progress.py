"""`grape run --progress`: every task's state, drawn anew as events come."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.table import Table

from sglang_ext.driver.events import (
    Event,
    RunFailed,
    RunFinished,
    RunStarted,
    TaskFailed,
    TaskFinished,
    TaskSubmitted,
    Token,
)

_SHOWN_RUNS = 8


@dataclass(slots=True)
class _Row:
    state: str = "not started"
    tokens: int = 0
    seconds: float | None = None


class RunProgress:
    """A table on `console`: a row per task of the oldest runs that have not ended."""

    def __init__(self, console: Console) -> None:
        self._rows: dict[str, dict[str, _Row]] = {}
        self._index: dict[str, int] = {}
        self._live = Live(console=console, refresh_per_second=8, get_renderable=self.table)

    def __enter__(self) -> RunProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def take(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._rows[event.run] = {task: _Row() for task in event.tasks}
            self._index[event.run] = event.index
        elif isinstance(event, RunFinished | RunFailed):
            if len(self._rows) > _SHOWN_RUNS:
                del self._rows[event.run]
        else:
            _change(self._rows[event.run][event.task], event)

    def table(self) -> Table:
        table = Table("run", "task", "state", "tokens", "s", box=None, pad_edge=False)
        for run, tasks in list(self._rows.items())[:_SHOWN_RUNS]:
            for name, row in tasks.items():
                seconds = "" if row.seconds is None else f"{row.seconds:.2f}"
                table.add_row(str(self._index[run]), name, row.state, str(row.tokens or ""), seconds)
        return table


def _change(row: _Row, event: TaskSubmitted | Token | TaskFinished | TaskFailed) -> None:
    row.seconds = event.at
    if isinstance(event, TaskSubmitted):
        row.state = "submitted"
    elif isinstance(event, Token):
        row.state, row.tokens = "decoding", row.tokens + len(event.ids)
    elif isinstance(event, TaskFinished):
        row.state = f"done ({event.record.finish_reason})"
    else:
        row.state = f"failed ({event.error.kind})"
