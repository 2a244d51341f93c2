"""What can be set about a policy, and which of its parts can be switched off by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

SWITCHES = {
    "priority": "the order of micro-tasks; without it the oldest comes first",
    "region": "the limit of a step's time by the SLOs; without it a step is filled up to SGLang's chunk",
    "stage2": "prefill of prompts whose outputs are still to come; without it only complete prompts are prefilled",
    "preemption": "giving KV back by distance; without it one task yields where nothing else could go on",
    "edge_weight": "the least piece of a streamed output; without it each token may be a piece",
    "deadlines": "going beyond the ridge for a deadline; without it a step is filled to the ridge alone",
    "ridge": "the free room up to the ridge; without it prefill gets only what a deadline asks for",
}
"""Parts that can be switched off, and what is left without them. `Policy.switches` says which ones a policy has."""

EVICTION_ORDERS = ("distance", "cost", "lru", "fcfs")


class UnknownNameError(ValueError):
    """A policy, a part of one or an eviction order that does not exist; the text lists the nearest ones.

    Args:
        what: the kind of thing that was asked for.
        name: what was received.
        known: the names that exist.
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        close = difflib.get_close_matches(name, self.known, n=3, cutoff=0.5)
        if close:
            hint = f"did you mean {' or '.join(repr(each) for each in close)}?"
        else:
            hint = f"known: {', '.join(self.known)}" if self.known else "there is none"
        super().__init__(f"unknown {what} {name!r}; {hint}")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings of every policy; each reads those that its parts need.

    Steps are counted in decode steps. The defaults of the deadlines come from this project's simulation.

    Args:
        off: names of parts that are switched off (`SWITCHES`).
        grant_tokens: q: the least prefill that is worth a step's while. The oldest complete prompt gets it whatever
            the SLOs say, and less free room than this is none.
        grant_every: m: steps within which the oldest complete prompt gets it.
        short: tokens up to which a complete prompt does not wait behind a longer one.
        assumed_tbt: TBT of a decode without an SLO, in unloaded decode steps; 0 leaves it without one.
        assumed_ttft: TTFT of a run without an SLO, in unloaded decode steps.
        ridge_share: rise of a step's time over decode alone that counts as free, 0.05 = 5%.
        upstream_share: part of the steps until a prompt is complete by which its known tokens should be in.
        ttft_share: part of a run's time to its first token by which its prompt should be in.
        hurry: multiple of these two shares where no room is free, so that waiting gains nothing.
        soon_steps: steps until a prompt is complete, from which on it may take more than the free room.
        late: multiple of its TTFT after which a run without a token goes before all others.
        weight: least tokens of a streamed output that make a piece; None chooses them by the cost model.
        weight_share: how much dearer per token than a large chunk such a piece may be, 0.05 = 5%.
        piece_s: seconds of scheduling that each piece costs.
        reserve: share of the free KV that prompts which are not complete leave alone.
        budget: tokens of prefill per step for the policy `budget`.
        eviction: who gives KV back first, one of `EVICTION_ORDERS`.
    """

    off: frozenset[str] = frozenset()
    grant_tokens: int = 16
    grant_every: int = 2
    short: int = 64
    assumed_tbt: float = 3.0
    assumed_ttft: float = 40.0
    ridge_share: float = 0.05
    upstream_share: float = 0.7
    ttft_share: float = 0.8
    hurry: float = 0.2
    soon_steps: float = 12.0
    late: float = 2.0
    weight: int | None = None
    weight_share: float = 0.05
    piece_s: float = 0.00025
    reserve: float = 0.25
    budget: int = 64
    eviction: str = "distance"

    def __post_init__(self) -> None:
        for name in sorted(self.off):
            if name not in SWITCHES:
                raise UnknownNameError("part of a policy", name, SWITCHES)
        if self.eviction not in EVICTION_ORDERS:
            raise UnknownNameError("eviction order", self.eviction, EVICTION_ORDERS)

    def has(self, part: str) -> bool:
        """Whether a part is on."""
        return part not in self.off
