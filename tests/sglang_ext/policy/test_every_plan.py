"""What every plan of every policy keeps to, whatever is switched off."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import Load
from sglang_ext.policy.feasible_region import slo_min
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.policy import Policy
from sglang_ext.policy.snapshot import Plan, Snapshot
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.steps import complete, decode, prefill, snapshot
from tests.sglang_ext.policy.strategies import CPU, policies, snapshots


def planned(policy: Policy, seen: Snapshot) -> Plan:
    plan = policy.plan(seen)
    assert plan is not None
    return plan


@settings(max_examples=400)
@given(policies(), snapshots())
def test_equal_snapshots_give_equal_plans(policy: Policy, seen: Snapshot) -> None:
    first = planned(policy, seen)
    again = new_policy(policy.name, policy.configuration, StepTimes(policy.times.model))  # type: ignore[attr-defined]
    assert planned(policy, seen) == first == planned(again, seen)


@settings(max_examples=600)
@given(policies(), snapshots())
def test_nothing_is_taken_that_is_not_there(policy: Policy, seen: Snapshot) -> None:
    plan = planned(policy, seen)
    prompts = {prefill.rid: prefill for prefill in seen.ready}
    taken = {piece.rid: piece.tokens for piece in plan.pieces}
    assert len(taken) == len(plan.pieces), "no prompt has two pieces"
    assert not taken.keys() & set(plan.give_up)
    assert all(0 < tokens <= prompts[rid].pending for rid, tokens in taken.items())
    assert sum(taken.values()) <= seen.chunk
    first = [prompts[rid] for rid in taken]
    assert sum(prefill.complete for prefill in first) <= seen.seats_free
    assert sum(not prefill.complete and not prefill.has_row for prefill in first) <= seen.rows_free


@settings(max_examples=600)
@given(policies(), snapshots())
def test_kv_in_whole_pages_is_never_exceeded(policy: Policy, seen: Snapshot) -> None:
    plan = planned(policy, seen)
    prompts = {prefill.rid: prefill for prefill in seen.ready}
    page = seen.page

    def pages(early: bool) -> int:
        ends = [
            (prompts[p.rid].context, prompts[p.rid].context + p.tokens)
            for p in plan.pieces
            if not (early and prompts[p.rid].complete)
        ]
        return sum(-(-end // page) - -(-start // page) for start, end in ends)

    decodes = sum(decode.context % page == 0 for decode in seen.decodes)
    assert not pages(False) or (pages(False) + decodes) * page <= seen.kv_free
    assert pages(True) * page <= seen.kv_free * 0.75, "early prefill leaves the reserve alone"
    for piece in plan.pieces:
        prefill = prompts[piece.rid]
        assert piece.tokens == prefill.pending or (prefill.context + piece.tokens) % page == 0
        assert prefill.complete or not (seen.short or plan.give_up), "no early prefill under pressure"


@settings(max_examples=600)
@given(policies(("paper", "deadline")), snapshots())
def test_only_the_starvation_guard_goes_beyond_the_region(policy: Policy, seen: Snapshot) -> None:
    configuration = policy.configuration  # type: ignore[attr-defined]
    model = policy.times.model  # type: ignore[attr-defined]
    assume(configuration.has("region"))
    plan = planned(policy, seen)
    prompts = {prefill.rid: prefill for prefill in seen.ready}
    limit = slo_min(seen, configuration.assumed_tbt * model.decode_step())
    time = model.time(Load.of(seen.decodes, ((prompts[p.rid].context, p.tokens) for p in plan.pieces)))
    if plan.pieces and time > limit * (1 + 1e-9):
        [piece] = plan.pieces
        granted = prompts[piece.rid]
        assert granted.complete and granted.waited >= configuration.grant_every - 1
        assert piece.tokens < configuration.grant_tokens + seen.page


@settings(max_examples=300)
@given(st.sampled_from(["paper", "deadline"]), snapshots())
def test_what_waits_for_its_upstream_is_not_touched_without_prevision(name: str, seen: Snapshot) -> None:
    policy = new_policy(name, Configuration(off=frozenset({"stage2"})), StepTimes(CPU))
    complete = {prefill.rid for prefill in seen.ready if prefill.complete}
    assert {piece.rid for piece in planned(policy, seen).pieces} <= complete


@settings(max_examples=300)
@given(policies(), snapshots())
def test_who_yields_is_everybody_once(policy: Policy, seen: Snapshot) -> None:
    order = policy.yields_first(seen.holding)
    assert Counter(order) == Counter(each.rid for each in seen.holding)
    complete = [each for each in seen.holding if each.complete]
    if complete:
        assert order[-1] == min(complete, key=lambda each: each.order).rid
    by_rid = {each.rid: each.complete for each in seen.holding}
    kinds = [by_rid[rid] for rid in order]
    assert kinds == sorted(kinds), "incomplete prompts yield before complete ones"


def test_the_work_of_planning_does_not_grow_with_what_waits() -> None:
    """The times of steps are asked for the pieces that fit, not for all that is ready."""

    class Counting(StepTimes):
        asked = 0

        def room(self, *args: object, **kwargs: object) -> int:
            self.asked += 1
            return super().room(*args, **kwargs)  # type: ignore[arg-type]

    rows = [decode(f"d{i}", tbt_s=0.3, last_token_s=10.0) for i in range(64)]
    counts = []
    for size in (100, 400):
        early = [prefill(f"e{i}", 100, 2 * i, hops=1 + i % 4, rest_steps=1.0 + i) for i in range(size)]
        whole = [complete(f"c{i}", 50, 2 * i + 1, since_s=9.9) for i in range(size)]
        ready = sorted([*early, *whole], key=lambda each: each.order)
        for policy in ("paper", "deadline"):
            times = Counting(CPU)
            assert new_policy(policy, Configuration(), times).plan(snapshot(ready, rows))
            counts.append(times.asked)
    assert counts[:2] == counts[2:]
    assert max(counts) < 40
