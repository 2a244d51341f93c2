"""The event log: what the scheduler did to tasks, step by step, as JSON lines for tests and debugging."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import IO, Any

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.settings import SettingsError


class EventLog:
    """Appends events to a file; without a path it does nothing.

    Every line has `t` (seconds on the engine's clock), `step`, `event`, `run` and `task`. Events: `state`,
    `piece` (ids [start, end) launched, of which `streamed` came through a hole; `complete` once the
    whole prompt is known), `tokens` (output ids that became known) and `upstreams_ended` (with the
    prompt tokens in KV at that moment).

    Raises:
        SettingsError: the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.step = 0
        self._file: IO[str] | None = _open(path) if path else None

    @property
    def is_on(self) -> bool:
        """Whether there is a file."""
        return self._file is not None

    def state(self, req: PiecewiseRequest, note: str | None = None) -> None:
        if isinstance(req, TaskRequest) and req.has_task:
            self._write("state", req, state=req.task.state, note=note)

    def piece(self, req: PiecewiseRequest, last: bool) -> None:
        if not isinstance(req, TaskRequest):
            return
        piece = req.pieces[-1]
        span = {"start": piece.start, "end": piece.end, "streamed": piece.streamed}
        self._write("piece", req, **span, complete=req.task.complete, last=last)

    def tokens(self, req: TaskRequest, count: int) -> None:
        self._write("tokens", req, count=count)

    def upstreams_ended(self, req: TaskRequest, in_kv: int) -> None:
        self._write("upstreams_ended", req, in_kv=in_kv)

    def _write(self, event: str, req: TaskRequest, **fields: Any) -> None:
        if self._file is None:
            return
        hint = req.task.hint
        line = {"t": time.monotonic(), "step": self.step, "event": event, "run": hint.run, "task": hint.task, **fields}
        self._file.write(json.dumps(line) + "\n")


def _open(path: str) -> IO[str]:
    try:
        # Open for the life of the process; a line is written at once.
        return Path(path).open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        what = f"it takes a file that can be written to, got: {error.strerror or error}"
        raise SettingsError(f"GRAPE_EVENT_LOG={path!r}: {what}") from None
