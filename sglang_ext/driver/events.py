"""What a run tells while it goes on. Every event names its run; times are seconds from the run's submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sglang_ext.driver.record import Record, RunError, TaskRecord


@dataclass(frozen=True, slots=True)
class RunStarted:
    """All tasks are about to be submitted. `tasks` in topological order."""

    run: str
    index: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskSubmitted:
    """The task was sent to the engine; with streaming that is at once, its prompt may still have holes."""

    run: str
    task: str
    variable: str
    at: float


@dataclass(frozen=True, slots=True)
class Token:
    """New output of a task. What was sent never changes; the texts joined are the task's output text.

    Args:
        ids: the new output ids, of which `text` may still lack a character that is not complete.
    """

    run: str
    task: str
    variable: str
    text: str
    ids: tuple[int, ...]
    at: float


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """The task has its output.

    Args:
        engine: the plugin's figures on the engine's clock (docs/record.md); empty without streaming.
    """

    run: str
    task: str
    variable: str
    record: TaskRecord
    engine: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """The task ended without an output; the run's other tasks are aborted."""

    run: str
    task: str
    variable: str
    error: RunError
    at: float


@dataclass(frozen=True, slots=True)
class RunFinished:
    run: str
    record: Record


@dataclass(frozen=True, slots=True)
class RunFailed:
    run: str
    record: Record
    error: RunError


Event = RunStarted | TaskSubmitted | Token | TaskFinished | TaskFailed | RunFinished | RunFailed
