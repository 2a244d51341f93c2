"""The policy in use: a fixed budget of early prefill per step, at lowest priority.

Complete prompts go first, since a first token waits for them. Early prefill takes what they leave of
the step's budget, the oldest task first. Under KV pressure the youngest task that does not run yet gives its KV
back, an incomplete prompt before a complete one.
"""

from __future__ import annotations

from dataclasses import dataclass

from sglang_ext.policy.snapshot import Holding, Plan, Snapshot

# Beside any number of complete prompts early prefill gets this part of the budget, so that it never stands still.
LEAST = 4


@dataclass(frozen=True, slots=True)
class EarlyBudget:
    """Limits of early prefill.

    Args:
        tokens: of prefill per step that has decodes or complete prompts, which it counts too; without
            any the step is free for early prefill. At least a part of it is early prefill's.
        rows: tasks that may hold KV before they run.
        reserve: share of the free KV that early prefill leaves alone, 0 to 1.
    """

    tokens: int = 64
    rows: int = 64
    reserve: float = 0.25


def plan(snapshot: Snapshot, limits: EarlyBudget) -> Plan:
    """The plan for one step; equal snapshots give equal plans."""
    give_up = _for_a_prompt(snapshot.holding) if snapshot.short else ()
    return Plan(
        urgent=tuple(p.rid for p in snapshot.ready if p.complete and p.rid not in give_up),
        early=_early(snapshot, limits) if not snapshot.short else (),
        give_up=give_up,
    )


def yields_first(holding: tuple[Holding, ...]) -> tuple[str, ...]:
    """Who gives KV back, first to last: incomplete prompts before complete ones, the youngest first."""
    incomplete = sorted((h for h in holding if not h.complete), key=lambda h: -h.order)
    complete = sorted((h for h in holding if h.complete), key=lambda h: -h.order)
    return tuple(h.rid for h in (*incomplete, *complete))


def _for_a_prompt(holding: tuple[Holding, ...]) -> tuple[str, ...]:
    """Who yields to a prompt without room; the oldest complete one never, so that one task always gets through."""
    stays = min((h.order for h in holding if h.complete), default=None)
    return yields_first(tuple(h for h in holding if h.order != stays))[:1]


def _early(snapshot: Snapshot, limits: EarlyBudget) -> tuple[tuple[str, int], ...]:
    room = int(snapshot.kv_free * (1 - limits.reserve))
    first = snapshot.first + sum(prefill.pending for prefill in snapshot.ready if prefill.complete)
    if snapshot.decoding or first:
        room = min(room, max(limits.tokens - first, limits.tokens // LEAST))
    rows = limits.rows - len(snapshot.holding)
    taken = []
    for prefill in snapshot.ready:
        if prefill.complete:
            continue
        if not prefill.has_row:
            if rows <= 0:
                continue
            rows -= 1
        tokens = min(prefill.pending, room)
        if tokens <= 0:
            break
        room -= tokens
        taken.append((prefill.rid, tokens))
    return tuple(taken)
