"""The starvation guard: a complete prompt gets its due even where no SLO leaves room for it.

The oldest complete prompt, if it got nothing for m - 1 steps, is granted q tokens, beyond the feasible region if
need be. So it gets at least q tokens in every m steps, whatever the SLOs are and however many more urgent ones
arrive; with room for r such prompts per step each of R is served within ceil(R / r) + m steps. A prompt that is not
complete needs no due: nothing waits for it before it is complete.
"""

from __future__ import annotations

from sglang_ext.policy.allotment import Allotment
from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.snapshot import Prefill, Snapshot


def candidates(snapshot: Snapshot) -> tuple[Prefill, ...]:
    """The prompts that a step may serve: all, but after a shortage those alone that are complete and hold KV.

    The engine admits a new prompt only where the whole of it fits, and asks in order: behind one that does not, what
    holds the KV would wait, and nothing would ever be freed.
    """
    if snapshot.short:
        holding = tuple(prefill for prefill in snapshot.ready if prefill.complete and prefill.has_row)
        if holding:
            return holding
    return snapshot.ready


def due(
    snapshot: Snapshot, room: Allotment, configuration: Configuration, gone: tuple[str, ...] = ()
) -> Prefill | None:
    """The prompt that is granted tokens in this step: the oldest complete one with room, if it waited long enough.

    Args:
        gone: prompts that give up their KV.
    """
    for prefill in candidates(snapshot):
        if prefill.complete and prefill.rid not in gone and room.most(prefill) > 0:
            return prefill if prefill.waited >= configuration.grant_every - 1 else None
    return None
