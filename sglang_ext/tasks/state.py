"""The states of a task and the ways between them."""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    """Where a task stands.

    `held`: its prompt is incomplete and none of it is in KV. `prefilling`: incomplete, a part is in
    KV. `ready`: the prompt is complete, its last piece not yet launched. `running`: an ordinary
    request of the engine. `finished` and `aborted` are ends.
    """

    HELD = "held"
    PREFILLING = "prefilling"
    READY = "ready"
    RUNNING = "running"
    FINISHED = "finished"
    ABORTED = "aborted"


ENDS = frozenset({TaskState.FINISHED, TaskState.ABORTED})

WAYS: dict[TaskState, frozenset[TaskState]] = {
    TaskState.HELD: frozenset({TaskState.PREFILLING, TaskState.READY, TaskState.ABORTED}),
    # Back to held: its KV was given up and will be prefilled again.
    TaskState.PREFILLING: frozenset({TaskState.HELD, TaskState.READY, TaskState.ABORTED}),
    TaskState.READY: frozenset({TaskState.RUNNING, TaskState.ABORTED}),
    TaskState.RUNNING: frozenset({TaskState.FINISHED, TaskState.ABORTED}),
    TaskState.FINISHED: frozenset(),
    TaskState.ABORTED: frozenset(),
}


class IllegalTransition(RuntimeError):
    """A task was asked to go a way that does not exist; a fault in the caller, never the user's."""


def step(current: TaskState, target: TaskState) -> TaskState:
    """`target`, if a way leads there from `current`; else IllegalTransition."""
    if target not in WAYS[current]:
        raise IllegalTransition(f"a task cannot go from {current} to {target}")
    return target
