"""How far a waiting task is from its turn: in decodes that stand before it, and in expected steps."""

from __future__ import annotations

from collections.abc import Callable

from sglang_ext.tasks.hint import Known
from sglang_ext.tasks.table import RunTable
from sglang_ext.tasks.task import Task

Rest = Callable[[Task, int], float]
"""Tokens that a task's output is expected to have after so many."""


class Distances:
    """Distances of the tasks of a table.

    A task whose upstream has not arrived yet counts it as one decode, of a length that nobody knows.

    Args:
        rest: what of an output is expected still to come.
    """

    def __init__(self, table: RunTable, rest: Rest) -> None:
        self._table = table
        self._rest = rest

    def hops(self, task: Task) -> int:
        """Decodes that must end before the task's own can start; 0 once its prompt is complete."""
        known: dict[str, int] = {}

        def walk(each: Task) -> int:
            if each.complete:
                return 0
            found = known.get(each.rid)
            if found is None:
                upstreams = self._table.waits_for(each)
                found = 1 + max((walk(up) if up is not None else 0 for up in upstreams), default=0)
                known[each.rid] = found
            return found

        return walk(task)

    def rest(self, task: Task) -> float:
        """Steps until the task's prompt is complete, one per token of the outputs before it; 0 once it is."""
        known: dict[str, float] = {}

        def walk(each: Task) -> float:
            if each.complete:
                return 0.0
            found = known.get(each.rid)
            if found is None:
                found = known[each.rid] = max(
                    (walk(up) + self._left(up) if up is not None else 0.0 for up in self._table.waits_for(each)),
                    default=0.0,
                )
            return found

        return walk(task)

    def to_come(self, task: Task, visible: int) -> int:
        """Tokens of the task's prompt behind the first `visible`, those of its open holes as they are expected."""
        if task.complete:
            return 0
        known = sum(len(segment.ids) for segment in task.open_segments if isinstance(segment, Known))
        waits = sum(self._left(up) for up in self._table.waits_for(task) if up is not None)
        return max(0, len(task.prompt) - visible) + known + int(waits)

    def _left(self, upstream: Task) -> float:
        """Tokens that an upstream is still expected to give, at least one."""
        return max(1.0, self._rest(upstream, self._table.output(upstream).seen))
