"""What a policy sees of one engine step, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prefill:
    """A task's prompt that has tokens to prefill.

    Args:
        pending: known tokens that are not in KV.
        has_row: the task holds KV already.
        order: number of arrival; smaller is older.
        complete: the whole prompt is known, so that a first token waits for this.
    """

    rid: str
    pending: int
    has_row: bool
    order: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Holding:
    """KV that a task holds before it runs."""

    rid: str
    tokens: int
    order: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One engine step, before it is formed.

    Args:
        ready: prompts with tokens to prefill, oldest first.
        holding: tasks that hold KV and do not run yet, oldest first.
        decoding: rows that would decode in this step.
        first: tokens of prefill that SGLang's queue may launch, for which a first token waits.
        kv_free: tokens of KV that are free or can be evicted.
        short: an ordinary request or a complete prompt found no room in the step before.
    """

    ready: tuple[Prefill, ...]
    holding: tuple[Holding, ...]
    decoding: int
    first: int
    kv_free: int
    short: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What the next step takes of the tasks.

    Args:
        urgent: prompts to finish now, before ordinary requests, in this order.
        early: (rid, tokens) to prefill behind everything else, in this order.
        give_up: tasks that give their KV back, in this order, before the step is formed.
    """

    urgent: tuple[str, ...] = ()
    early: tuple[tuple[str, int], ...] = ()
    give_up: tuple[str, ...] = ()
