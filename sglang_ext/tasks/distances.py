"""How far a waiting task is from its turn: in decodes that stand before it, and in expected steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sglang_ext.tasks.table import RunTable
from sglang_ext.tasks.task import Task

N = TypeVar("N", int, float)
Rest = Callable[[Task], float]
"""Tokens that a task's output is expected to have after those that are known."""


class Distances:
    """Distances of the tasks of a table.

    A task whose upstream has not arrived yet counts it as one decode, of a length that nobody knows.

    Args:
        rest: what of an output is expected still to come.
    """

    def __init__(self, table: RunTable, rest: Rest) -> None:
        self._table = table
        self._rest = rest
        # Of this step alone, by request id.
        self._steps: dict[str, float] = {}
        self._tokens: dict[str, float] = {}

    def begin_step(self) -> None:
        """Outputs may have grown since."""
        self._steps.clear()
        self._tokens.clear()

    def hops(self, task: Task) -> int:
        """Decodes that must end before the task's own can start; 0 once its prompt is complete."""
        if task.complete:
            return 0
        return self._longest(task, self._table.known_hops(task), lambda upstream: 1, unknown=1)

    def rest(self, task: Task) -> float:
        """Steps until the task's prompt is complete, one per token of the outputs before it; 0 once it is."""
        if task.complete:
            return 0.0
        return self._longest(task, self._steps, self._left, unknown=0.0)

    def to_come(self, task: Task, visible: int) -> int:
        """Tokens of the task's prompt behind the first `visible`, those of its open holes as they are expected."""
        if task.complete:
            return 0
        waits = sum(self._left(up) for up in self._table.waits_for(task) if up is not None)
        return max(0, len(task.prompt) - visible) + task.known_ahead + int(waits)

    def _left(self, upstream: Task) -> float:
        """Tokens that an upstream is still expected to give, at least one."""
        found = self._tokens.get(upstream.rid)
        if found is None:
            found = max(1.0, self._rest(upstream))
            self._tokens[upstream.rid] = found
        return found

    def _longest(self, task: Task, known: dict[str, N], length: Callable[[Task], N], unknown: N) -> N:
        """The longest way to a task over the upstreams that it waits for, each of a length.

        Args:
            known: ways found before; gets those found now.
            unknown: the way to a task that waits for none that has come.
        """
        found = known.get(task.rid)
        if found is not None:
            return found
        # Chains can be deeper than Python's stack: a task's upstreams first, then the task itself.
        stack = [task]
        while stack:
            each = stack[-1]
            upstreams = [up for up in self._table.waits_for(each) if up is not None]
            missing = [up for up in upstreams if not up.complete and up.rid not in known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            ways = [length(up) if up.complete else known[up.rid] + length(up) for up in upstreams]
            known[each.rid] = max(ways, default=unknown)
        return known[task.rid]
