"""What a policy sees of one engine step before it is formed, and what it answers.

Times are seconds on the lead rank's clock. All ranks, and the simulator, give a policy equal snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Decode(NamedTuple):
    """A row that decodes in this step. SGLang takes all of them or none. A tuple, since each step makes one per row.

    Args:
        context: tokens of KV that it reads.
        last_token_s: when its last token left, None if none has left.
        tbt_s: its SLO for the time between two tokens, None if it has none.
    """

    rid: str
    run: str
    context: int
    last_token_s: float | None = None
    tbt_s: float | None = None


@dataclass(frozen=True, slots=True)
class Prefill:
    """A prompt with tokens that may be prefilled now; an ordinary request is a run of one task.

    Args:
        order: number of arrival of its task; smaller is older.
        pending: known tokens that are not in KV.
        context: its tokens that are in KV, or were found in the cache.
        has_row: it holds KV already.
        complete: the whole prompt is known, so that a first token waits for this.
        stalled: complete, and its run has produced tokens before: a gap of the run's stream is open.
        hops: decodes that must end before its own can start, itself not counted; 0 if complete.
        to_come: tokens of its prompt that are not known yet, as far as they can be estimated.
        rest_steps: decode steps until the prompt is complete, as far as they can be estimated; 0 if complete.
        since_s: when it became complete if it is, else when its task arrived.
        deadline_s: when its first token is due by its SLO, None if it has none or it is not known yet.
        waited: steps in a row, up to now, that found it ready and prefilled nothing of it.
        weight: the edge weight that its program asks for: no piece of it need be larger.
    """

    rid: str
    run: str
    order: int
    pending: int
    context: int = 0
    has_row: bool = False
    complete: bool = False
    stalled: bool = False
    hops: int = 0
    to_come: int = 0
    rest_steps: float = 0.0
    since_s: float = 0.0
    deadline_s: float | None = None
    waited: int = 0
    weight: int = 64


@dataclass(frozen=True, slots=True)
class Holding:
    """KV that a task holds before it runs.

    Args:
        hops: as for `Prefill`.
        rest_steps: decode steps until it is used, as far as they can be estimated.
        used_s: when a piece of it was computed last.
    """

    rid: str
    tokens: int
    order: int
    complete: bool
    hops: int = 0
    rest_steps: float = 0.0
    used_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One engine step, before it is formed.

    Args:
        now_s: the lead rank's clock.
        ready: prompts with tokens to prefill, oldest first; ordinary requests are among them.
        decodes: rows that would decode in this step.
        holding: tasks that hold KV and do not run yet, oldest first.
        kv_free: tokens of KV that are free or can be evicted.
        rows_free: tasks that may still begin to hold KV before they run.
        seats_free: requests that may still join the decodes (SGLang's limit of running requests).
        chunk: tokens of prefill that one step can hold at most (SGLang's chunk size).
        page: tokens per page of KV.
        short: an ordinary request or a complete prompt found no room in the step before.
    """

    now_s: float
    ready: tuple[Prefill, ...]
    decodes: tuple[Decode, ...]
    holding: tuple[Holding, ...]
    kv_free: int
    rows_free: int
    seats_free: int
    chunk: int
    page: int = 1
    short: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens of one prompt that a step prefills."""

    rid: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What the next step takes beside the decodes.

    Args:
        pieces: in the order in which they get room. What is not named is not prefilled.
        give_up: tasks that give their KV back, in this order, before the step is formed.
    """

    pieces: tuple[Piece, ...] = ()
    give_up: tuple[str, ...] = ()
