"""Time limits of tasks, kept by the lead rank alone.

Ranks must decide alike, so nothing else reads a clock to decide: what is due here is broadcast with
the requests of the step, and every rank acts on it in that step.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from sglang.srt.managers.io_struct import AbortReq, BaseReq

from sglang_ext.engine.task_request import TaskRequest

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks

# Limits are seconds; looking more often than this only costs. Each task is looked at, so many are looked at seldomer.
INTERVAL, PER_TASK, MOST = 0.05, 0.002, 0.5


class LapseReq(BaseReq, kw_only=True):  # type: ignore[misc,call-arg]
    """To every rank: the task with this request id gives its early KV back."""


class TickReq(BaseReq, kw_only=True):  # type: ignore[misc,call-arg]
    """To every rank: the lead rank's clock, seconds, when it received this step's requests."""

    now_s: float


class TaskClock:
    """Finds what is overdue."""

    def __init__(self, held: HeldTasks) -> None:
        self._held = held
        self._next = 0.0
        # When the first task of each living run arrived.
        self._began: dict[str, float] = {}

    def tick(self) -> list[TickReq]:
        """The time, to broadcast with each step's requests while there is something to plan."""
        return [TickReq(now_s=time.monotonic())] if self._held else []

    def poll(self) -> list[Any]:
        """Requests to broadcast: aborts of overdue tasks, lapses of KV that waits for too long."""
        now = time.monotonic()
        if now < self._next or not self._held.requests:
            return []
        self._next = now + min(MOST, INTERVAL + PER_TASK * len(self._held.requests))
        due: list[Any] = self._aged_runs(now)
        for rid, req in self._held.requests.items():
            if rid in self._held.growing:
                due.extend(self._waiting(req, now))
            elif message := _running_too_long(req, now):
                due.append(_abort(rid, message))
        return due

    def _aged_runs(self, now: float) -> list[Any]:
        """An abort of one task for each run that has lived for too long: it ends the run."""
        limit, table = self._held.settings.run_age, self._held.table
        self._began = {run: began for run, began in self._began.items() if table.knows(run)}
        over: dict[str, AbortReq] = {}
        for rid, req in self._held.requests.items():
            run = req.task.hint.run
            if now - self._began.setdefault(run, req.submitted_s) > limit and run not in over:
                over[run] = _abort(rid, f"the run did not end within {limit:g} s, the engine's limit (GRAPE_RUN_AGE)")
        return list(over.values())

    def _waiting(self, req: TaskRequest, now: float) -> list[Any]:
        task, settings = req.task, self._held.settings
        missing = self._held.table.missing_upstream(task)
        if missing is not None and now - req.grown_s > settings.upstream_timeout:
            message = f"task {task.hint.task!r} waited {settings.upstream_timeout:g} s for {missing!r}, never submitted"
            return [_abort(req.rid, message)]
        if req.kv.holds_kv and not task.complete and now - req.grown_s > settings.lapse:
            return [LapseReq(rid=req.rid)]
        return []


def _running_too_long(req: TaskRequest, now: float) -> str | None:
    limits, name = req.task.hint.timeout, req.task.hint.task
    if req.finished() or req.to_finish is not None or req.complete_s is None:
        return None
    if limits.run is not None and now - req.complete_s > limits.run:
        return f"task {name!r} ran longer than its timeout of {limits.run:g} s"
    if limits.idle is not None and req.last_token_s is not None and now - req.last_token_s > limits.idle:
        return f"task {name!r} gave no token for its idle timeout of {limits.idle:g} s"
    return None


def _abort(rid: str, message: str) -> AbortReq:
    reason = {"type": "abort", "message": message, "status_code": HTTPStatus.GATEWAY_TIMEOUT, "err_type": "Timeout"}
    return AbortReq(rid=rid, abort_message=message, finished_reason=reason)
