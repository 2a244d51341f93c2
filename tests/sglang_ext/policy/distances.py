"""What hops and steps are by their definition, of a whole run at once; what computes them step by step must agree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def hops(upstream: Mapping[T, Collection[T]], ended: Collection[T]) -> dict[T, int]:
    """Hops of each task of a run that has not ended.

    Args:
        upstream: for each task those whose outputs it reads; a task that is not a key counts as one without any.
        ended: tasks whose output is complete.
    """
    return {task: round(found) for task, found in _longest(upstream, ended, lambda task: 1.0).items()}


def rest_steps(upstream: Mapping[T, Collection[T]], ended: Collection[T], rest: Callable[[T], float]) -> dict[T, float]:
    """Decode steps until the prompt of each task that has not ended is complete, prefill not counted.

    Args:
        rest: the decode steps that a task still takes.
    """
    return _longest(upstream, ended, rest)


def _longest(upstream: Mapping[T, Collection[T]], ended: Collection[T], length: Callable[[T], float]) -> dict[T, float]:
    """For each task the longest way through tasks that have not ended to it, itself not counted."""
    done = set(ended)
    found: dict[T, float] = {}
    for start in upstream:
        # Deep chains are walked without recursion: a task's upstreams first, then the task itself.
        stack = [start]
        while stack:
            task = stack[-1]
            if task in found or task in done:
                stack.pop()
                continue
            waits_for = [each for each in upstream.get(task, ()) if each not in done]
            missing = [each for each in waits_for if each not in found]
            if missing:
                stack.extend(missing)
                continue
            found[task] = max((found[each] + length(each) for each in waits_for), default=0.0)
            stack.pop()
    return found
