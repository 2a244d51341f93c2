"""Priority of micro-tasks: how far they are from the critical node that their run works on.

Grape paper (SC 2026), section III-D: micro-tasks that produce tokens are critical, in topological order of their run;
each other one inherits from its nearest critical descendant, by hops. A task's prefill descends to its own decode, so
its priority is the number of decodes, one behind the other, that must end before that one can start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import TypeVar

from sglang_ext.policy.snapshot import Prefill

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


def by_distance(prefill: Prefill) -> tuple[int, float, int]:
    """Sorts prompts by distance from their run's active critical node, then by when they are needed, then by age."""
    return prefill.hops, prefill.rest_steps, prefill.order


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
