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

# Limits are seconds; looking more often than this only costs.
INTERVAL = 0.05


class LapseReq(BaseReq, kw_only=True):  # type: ignore[misc,call-arg]
    """To every rank: the task with this request id gives its early KV back."""


class TaskClock:
    """Finds what is overdue."""

    def __init__(self, held: HeldTasks) -> None:
        self._held = held
        self._next = 0.0

    def poll(self) -> list[Any]:
        """Requests to broadcast: aborts of overdue tasks, lapses of KV that waits for too long."""
        now = time.monotonic()
        if now < self._next or not self._held.requests:
            return []
        self._next = now + INTERVAL
        due: list[Any] = []
        for rid, req in self._held.requests.items():
            if rid in self._held.growing:
                due.extend(self._waiting(req, now))
            elif message := _running_too_long(req, now):
                due.append(_abort(rid, message))
        return due

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
    quiet_since = req.last_token_s if req.last_token_s is not None else req.complete_s
    if limits.idle is not None and now - quiet_since > limits.idle:
        return f"task {name!r} gave no token for its idle timeout of {limits.idle:g} s"
    return None


def _abort(rid: str, message: str) -> AbortReq:
    reason = {"type": "abort", "message": message, "status_code": HTTPStatus.GATEWAY_TIMEOUT, "err_type": "Timeout"}
    return AbortReq(rid=rid, abort_message=message, finished_reason=reason)
