"""Who gives KV back, in which order, and how much."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_ext.policy.configuration import EVICTION_ORDERS, Configuration
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.preemption import free, gives_up, in_order, shortage, yield_order
from sglang_ext.policy.snapshot import Holding, Snapshot
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.steps import complete, decode, holding, prefill, snapshot
from tests.sglang_ext.policy.strategies import CPU, snapshots

# Prefilling again costs the more per token the longer the prompt is.
TIMES = StepTimes(CostModel(fixed=0.01, token=0.001, attention=1e-6))
HELD = (
    holding("done", 50, order=0, complete=True, used_s=5.0),
    holding("near", 100, order=1, hops=1, rest_steps=10.0, used_s=2.0),
    holding("far-long", 400, order=2, hops=3, rest_steps=60.0, used_s=4.0),
    holding("far-short", 100, order=3, hops=3, rest_steps=60.0, used_s=3.0),
    holding("next", 100, order=4, hops=1, rest_steps=2.0, used_s=1.0),
    holding("done-late", 50, order=5, complete=True, used_s=0.0),
)


def order(name: str) -> list[str]:
    return [each.rid for each in in_order(HELD, name, TIMES)]


def test_the_farthest_yields_first_and_of_equals_the_cheapest_per_token() -> None:
    assert order("distance") == ["far-short", "far-long", "next", "near", "done-late", "done"]


def test_by_cost_also_the_time_until_use_counts() -> None:
    assert order("cost") == ["far-short", "far-long", "near", "next", "done-late", "done"]


def test_by_age_of_use_and_by_arrival() -> None:
    assert order("lru") == ["next", "near", "far-short", "far-long", "done-late", "done"]
    assert order("fcfs") == ["next", "far-short", "far-long", "near", "done-late", "done"]


def test_as_few_as_free_what_is_needed() -> None:
    held = [holding("a", 100), holding("b", 50), holding("c", 50)]
    assert free(held, 0).rids == ()
    assert free(held, 100).rids == ("a",)
    assert free(held, 101).rids == ("a", "b")
    all_of_them = free(held, 201)
    assert (all_of_them.rids, all_of_them.tokens, all_of_them.enough) == (("a", "b", "c"), 200, False)


def test_a_complete_prompt_without_room_takes_back_just_enough() -> None:
    seen = snapshot([complete("c", 300, 9)], [decode("d")], HELD, kv_free=20)
    # 300 and the decode's next token, less 20, are 281: 100 and 400 free them.
    assert shortage(seen) == (281, 281)
    assert gives_up(seen, Configuration(), TIMES) == ("far-short", "far-long")


def test_decodes_take_back_too() -> None:
    rows = [decode(f"d{i}", context=32) for i in range(4)]
    assert gives_up(snapshot([], rows, HELD, kv_free=3), Configuration(), TIMES) == ("far-short",)
    assert gives_up(snapshot([], rows, HELD, kv_free=4), Configuration(), TIMES) == ()
    assert gives_up(snapshot([], rows, HELD, kv_free=48, page=16), Configuration(), TIMES) == ("far-short",)


def test_a_complete_prompt_never_yields_to_a_younger_one() -> None:
    held = HELD[:1] + HELD[5:]
    ready = [complete("done", 10, 0, context=50, has_row=True), complete("young", 300, 9)]
    assert gives_up(snapshot(ready, [decode("d")], held, kv_free=50), Configuration(), TIMES) == ()
    assert gives_up(snapshot(ready, [decode("d")], held, kv_free=5), Configuration(), TIMES) == ("done-late",)


def test_one_yields_where_something_found_no_room_though_there_seems_to_be_some() -> None:
    seen = snapshot([complete("c", 10, 9)], [decode("d")], HELD, short=True)
    assert gives_up(seen, Configuration(), TIMES) == ("far-short",)
    assert gives_up(seen, Configuration(eviction="lru"), TIMES) == ("next",)


def test_without_preemption_one_yields_only_where_nothing_else_goes_on() -> None:
    off = Configuration(off=frozenset({"preemption"}))
    assert gives_up(snapshot([], [decode("d")], HELD, short=True), off, TIMES) == ()
    assert gives_up(snapshot([], [], HELD, short=True), off, TIMES) == ("next",)


@pytest.mark.parametrize("name", EVICTION_ORDERS)
def test_the_oldest_complete_prompt_stays(name: str) -> None:
    assert yield_order(HELD, Configuration(eviction=name), TIMES)[-1] == "done"
    everything = snapshot([complete("c", 2000, 9)], [], HELD, kv_free=0)
    assert set(gives_up(everything, Configuration(eviction=name), TIMES)) == {h.rid for h in HELD} - {"done"}


@settings(max_examples=500)
@given(snapshots(), st.sampled_from(EVICTION_ORDERS))
def test_it_frees_enough_or_all_that_may_yield(seen: Snapshot, eviction: str) -> None:
    given_up = gives_up(seen, Configuration(eviction=eviction), StepTimes(CPU))
    tokens = {each.rid: each.tokens for each in seen.holding}
    freed = sum(tokens[rid] for rid in given_up)
    everything, oldest = shortage(seen)
    stays = min((h for h in seen.holding if h.complete), key=lambda h: h.order, default=None)
    may = [h for h in seen.holding if h is not stays]
    assert len(set(given_up)) == len(given_up)
    assert stays is None or stays.rid not in given_up
    assert bool(given_up) <= (seen.short or everything > 0)
    assert freed >= oldest or set(given_up) == {h.rid for h in may}
    assert freed >= everything or set(given_up) >= {h.rid for h in may if not h.complete}
    if seen.short and any(not h.complete for h in may):
        assert given_up


def test_a_prompt_without_room_gets_through_among_many_half_done_ones() -> None:
    """Each step gives up what is in the way, until the oldest one has all its KV."""
    pool, tokens = 300, 120
    held: dict[str, int] = {}
    computed = {f"p{i}": 0 for i in range(6)}
    kinds = {rid: i >= 3 for i, rid in enumerate(computed)}
    policy = new_policy("paper", Configuration(), StepTimes(CPU))
    steps = 0
    while steps < 30:
        steps += 1
        ready = [
            prefill(
                rid,
                tokens - computed[rid],
                i,
                context=computed[rid],
                has_row=rid in held,
                complete=kinds[rid],
                hops=0 if kinds[rid] else 1,
            )
            for i, rid in enumerate(kinds)
            if computed[rid] < tokens
        ]
        if not any(each.complete for each in ready):
            break
        rows = tuple(
            Holding(rid, count, int(rid[1:]), kinds[rid], 0 if kinds[rid] else 1) for rid, count in held.items()
        )
        plan = policy.plan(snapshot(ready, [], rows, kv_free=pool - sum(held.values()), chunk=50))
        assert plan is not None
        for rid in plan.give_up:
            computed[rid] = 0
            del held[rid]
        for piece in plan.pieces:
            computed[piece.rid] += piece.tokens
            held[piece.rid] = computed[piece.rid]
            if kinds[piece.rid] and computed[piece.rid] == tokens:
                # It decodes a moment and ends.
                del held[piece.rid]
        assert sum(held.values()) <= pool
    assert steps < 30, "all complete prompts got through"


@pytest.mark.parametrize("name", ["budget", "deadline", "paper"])
def test_after_a_shortage_what_holds_kv_goes_on_first(name):
    """An older prompt that the engine did not admit would be asked for again, and stop all behind it."""
    refused, begun = complete("refused", 300, 0), complete("begun", 40, 1, context=60, has_row=True)
    held = [holding("begun", 60, 1, complete=True)]
    policy = new_policy(name, Configuration(), StepTimes(CPU))
    for short, first in ((True, "begun"), (False, "refused")):
        pieces = policy.plan(snapshot([refused, begun], held=held, chunk=64, short=short)).pieces
        assert pieces[0].rid == first
        assert short is not any(piece.rid == "refused" for piece in pieces)
