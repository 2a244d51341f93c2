"""Priority of micro-tasks: how far they are from the critical node that their run works on.

Grape paper (SC 2026), section III-D: micro-tasks that produce tokens are critical, in topological order of their run;
each other one inherits from its nearest critical descendant, by hops. A task's prefill descends to its own decode, so
its priority is the number of decodes, one behind the other, that must end before that one can start.
"""

from __future__ import annotations

from sglang_ext.policy.snapshot import Prefill


def by_distance(prefill: Prefill) -> tuple[int, float, int]:
    """Sorts prompts by distance from their run's active critical node, then by when they are needed, then by age."""
    return prefill.hops, prefill.rest_steps, prefill.order
