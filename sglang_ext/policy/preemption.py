"""Preemption: under KV pressure what is needed last gives up its KV first.

Grape paper (SC 2026), section III-E: the micro-task farthest from its active critical node yields, and is prefilled
again later; ties go to the one that is cheapest to prefill again per token of KV freed. A complete prompt has a
decode waiting behind it, so it yields after all that are not complete, and the oldest one never does: one task
always gets through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import Load
from sglang_ext.policy.snapshot import Holding, Snapshot
from sglang_ext.policy.step_times import StepTimes


@dataclass(frozen=True, slots=True)
class Eviction:
    """Who gives KV back.

    Args:
        rids: in this order.
        tokens: of KV that this frees.
        enough: whether that is what was needed.
    """

    rids: tuple[str, ...]
    tokens: int
    enough: bool


def free(holding: Iterable[Holding], need: int) -> Eviction:
    """The first ones of `holding`, as few as free `need` tokens; all of them where that is not enough."""
    rids: list[str] = []
    freed = 0
    for each in holding:
        if freed >= need:
            break
        rids.append(each.rid)
        freed += each.tokens
    return Eviction(tuple(rids), freed, freed >= need)


def in_order(holding: Iterable[Holding], order: str, times: StepTimes) -> list[Holding]:
    """`holding` in an eviction order, the one that yields first in front; ties go to the youngest."""
    key = _ORDERS[order]
    return sorted(holding, key=lambda h: (h.complete, *key(h, times), -h.order))


def gives_up(snapshot: Snapshot, configuration: Configuration, times: StepTimes) -> tuple[str, ...]:
    """Who gives KV back before this step.

    There is pressure where a complete prompt or a decode's next token has no room, or something found none in the
    step before; then at least one task yields, if there is one that may.
    """
    if not snapshot.holding or not (snapshot.short or _tight(snapshot)):
        return ()
    need, oldest = shortage(snapshot)
    if need <= 0 and not snapshot.short:
        return ()
    if not configuration.has("preemption"):
        return () if snapshot.decodes else _one(snapshot.holding, times)
    stays = oldest_complete(snapshot.holding)
    order = in_order((h for h in snapshot.holding if h.rid != stays), configuration.eviction, times)
    incomplete = [h for h in order if not h.complete]
    first = free(incomplete, max(need, 1))
    if first.enough:
        return first.rids
    # Complete prompts yield for the oldest one and for decodes alone, or where nothing else could go on.
    stuck = not snapshot.decodes and not first.rids
    complete = [h for h in order if h.complete]
    return first.rids + free(complete, max(oldest - first.tokens, int(stuck))).rids


def shortage(snapshot: Snapshot) -> tuple[int, int]:
    """Tokens of KV that complete prompts and decodes lack in this step: for all of them, for the oldest one."""
    page = snapshot.page
    decodes = sum(decode.context % page == 0 for decode in snapshot.decodes) * page
    wanted = oldest = 0
    seats, chunk = snapshot.seats_free, snapshot.chunk
    for prefill in snapshot.ready:
        if not prefill.complete:
            continue
        if seats <= 0 or chunk <= 0:
            break
        tokens = min(prefill.pending, chunk)
        pages = -(-(prefill.context + tokens) // page) - -(-prefill.context // page)
        wanted += pages * page
        oldest = oldest or wanted
        seats -= 1
        chunk -= tokens
    return decodes + wanted - snapshot.kv_free, decodes + oldest - snapshot.kv_free


def _tight(snapshot: Snapshot) -> bool:
    """Whether a full chunk and the decodes' next tokens might not fit."""
    return snapshot.kv_free < snapshot.chunk + (len(snapshot.decodes) + len(snapshot.ready)) * snapshot.page


def oldest_complete(holding: Iterable[Holding]) -> str | None:
    """The task that never yields: the oldest complete prompt."""
    oldest = min((h for h in holding if h.complete), key=lambda h: h.order, default=None)
    return None if oldest is None else oldest.rid


def yield_order(holding: Iterable[Holding], configuration: Configuration, times: StepTimes) -> tuple[str, ...]:
    """All of `holding`, for an engine that needs KV at once; the one that never yields to a prompt comes last."""
    holding = tuple(holding)
    order = configuration.eviction if configuration.has("preemption") else "fcfs"
    stays = oldest_complete(holding)
    rids = [h.rid for h in in_order(holding, order, times) if h.rid != stays]
    return (*rids, stays) if stays is not None else tuple(rids)


def _one(holding: tuple[Holding, ...], times: StepTimes) -> tuple[str, ...]:
    stays = oldest_complete(holding)
    return tuple(h.rid for h in in_order(holding, "fcfs", times) if h.rid != stays)[:1]


def _again(holding: Holding, times: StepTimes) -> float:
    """Seconds per token of KV that prefilling again takes."""
    tokens = max(1, holding.tokens)
    load = Load().plus(0, tokens)
    return (times.time(load) - times.model.fixed) / tokens


def _distance(holding: Holding, times: StepTimes) -> tuple[float, ...]:
    return -holding.hops, _again(holding, times)


def _cost(holding: Holding, times: StepTimes) -> tuple[float, ...]:
    """What its KV is worth: seconds saved, per token held and step until it is used, the nearer the more."""
    return (_again(holding, times) / ((1 + holding.hops) * (1 + holding.rest_steps)),)


def _lru(holding: Holding, times: StepTimes) -> tuple[float, ...]:
    return (holding.used_s,)


def _fcfs(holding: Holding, times: StepTimes) -> tuple[float, ...]:
    return ()


_ORDERS: dict[str, Callable[[Holding, StepTimes], tuple[Any, ...]]] = {
    "distance": _distance,
    "cost": _cost,
    "lru": _lru,
    "fcfs": _fcfs,
}
