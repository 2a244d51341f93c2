"""Time limits of tasks, without an engine."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from sglang_ext.engine.clock import TaskClock
from sglang_ext.settings import EngineSettings
from sglang_ext.tasks.hint import Known, OutputHole, TaskHint, Timeouts, new_run_id
from sglang_ext.tasks.table import RunTable


def held_tasks(settings: EngineSettings) -> Any:
    return SimpleNamespace(settings=settings, table=RunTable(), requests={}, growing={})


def running(held: Any, now: float, timeout: Timeouts, **times: float | None) -> Any:
    """A task that decodes: its prompt was complete ten seconds ago."""
    hint = TaskHint(run=new_run_id(), task="a", index=0, tasks=1, segments=[Known(ids=[1])], timeout=timeout)
    task = held.table.add(hint, lambda left, right: None)
    values = {"submitted_s": now - 10, "complete_s": now - 10, "last_token_s": None} | times
    req = SimpleNamespace(rid=task.rid, task=task, finished=lambda: False, to_finish=None, **values)
    held.requests[task.rid] = req
    return req


def test_the_idle_timeout_begins_with_the_first_token() -> None:
    held, now = held_tasks(EngineSettings()), time.monotonic()
    req = running(held, now, Timeouts(idle=1))
    assert TaskClock(held).poll() == []
    req.last_token_s = now - 5
    (abort,) = TaskClock(held).poll()
    assert "gave no token for its idle timeout of 1 s" in abort.abort_message
    req.last_token_s = now - 0.2
    assert TaskClock(held).poll() == []


def test_the_run_timeout_counts_from_the_complete_prompt() -> None:
    held, now = held_tasks(EngineSettings()), time.monotonic()
    running(held, now, Timeouts(run=20))
    late = running(held, now, Timeouts(run=5))
    (abort,) = TaskClock(held).poll()
    assert abort.rid == late.rid
    assert abort.finished_reason["status_code"] == 504


def test_a_run_may_not_live_for_ever() -> None:
    """Its age counts from its first task, though that has ended; one abort ends it, and no other run."""
    held, now = held_tasks(EngineSettings(run_age=60)), time.monotonic()
    clock = TaskClock(held)
    run = new_run_id()
    hints = [
        TaskHint(run=run, task="a", index=0, tasks=3, segments=[Known(ids=[1])]),
        TaskHint(run=run, task="b", index=1, tasks=3, segments=[OutputHole(task="a")]),
        TaskHint(run=run, task="c", index=2, tasks=3, segments=[OutputHole(task="a")]),
    ]
    requests = []
    for hint in hints:
        task = held.table.add(hint, lambda left, right: None)
        kv = SimpleNamespace(holds_kv=False)
        requests.append(SimpleNamespace(rid=task.rid, task=task, submitted_s=now, grown_s=now, kv=kv))
    held.requests[requests[0].rid] = held.growing[requests[0].rid] = requests[0]
    requests[0].submitted_s = now - 59
    assert clock.poll() == []
    clear = [held.requests, held.growing]
    for table in clear:
        table.clear()
        table.update({req.rid: req for req in requests[1:]})
    running(held, now, Timeouts())
    clock = _later(clock, 2.0)
    (abort,) = clock.poll()
    assert abort.rid == requests[1].rid
    assert "GRAPE_RUN_AGE" in abort.abort_message
    assert abort.finished_reason["status_code"] == 504
    held.table.end_run(run, abort.abort_message)
    for req in requests[1:]:
        del held.requests[req.rid], held.growing[req.rid]
    assert _later(clock, 0).poll() == []
    assert run not in clock._began


def _later(clock: TaskClock, seconds: float) -> TaskClock:
    """The clock as if so much time had passed since its runs began, and due again."""
    clock._began = {run: began - seconds for run, began in clock._began.items()}
    clock._next = 0.0
    return clock
