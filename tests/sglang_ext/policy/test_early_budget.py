"""The policy in use: worked examples, and what every plan keeps to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.policy.early_budget import EarlyBudget, plan, yields_first
from sglang_ext.policy.snapshot import Holding, Plan, Prefill, Snapshot


def snapshot(ready: list[Prefill], holding: list[Holding] | None = None, **changes: object) -> Snapshot:
    values = {"decoding": 1, "first": 0, "kv_free": 1000, "short": False} | changes
    return Snapshot(ready=tuple(ready), holding=tuple(holding or ()), **values)  # type: ignore[arg-type]


def test_complete_prompts_first_and_whole() -> None:
    ready = [Prefill("a", 500, False, 0, False), Prefill("b", 900, True, 1, True)]
    got = plan(snapshot(ready), EarlyBudget(tokens=64))
    assert got == Plan(urgent=("b",), early=(("a", 16),))


def test_early_work_takes_what_complete_prompts_leave_of_the_budget() -> None:
    ready = [Prefill("a", 500, False, 0, False), Prefill("b", 20, True, 1, True)]
    got = plan(snapshot(ready, decoding=0, first=10), EarlyBudget(tokens=64))
    assert got == Plan(urgent=("b",), early=(("a", 34),))
    assert plan(snapshot(ready, decoding=0, first=900), EarlyBudget(tokens=64)).early == (("a", 16),)


def test_the_budget_goes_to_the_oldest_first() -> None:
    ready = [Prefill("a", 40, False, 0, False), Prefill("b", 40, False, 1, False), Prefill("c", 40, False, 2, False)]
    assert plan(snapshot(ready), EarlyBudget(tokens=64)).early == (("a", 40), ("b", 24))


def test_a_step_without_decodes_is_free_for_early_work() -> None:
    ready = [Prefill("a", 600, False, 0, False)]
    assert plan(snapshot(ready, decoding=0), EarlyBudget(tokens=64)).early == (("a", 600),)


def test_rows_are_limited_but_those_held_go_on() -> None:
    ready = [Prefill("a", 10, True, 0, False), Prefill("b", 10, False, 1, False), Prefill("c", 10, False, 2, False)]
    holding = [Holding("a", 5, 0, False)]
    assert plan(snapshot(ready, holding), EarlyBudget(rows=2)).early == (("a", 10), ("b", 10))
    assert plan(snapshot(ready, holding), EarlyBudget(rows=1)).early == (("a", 10),)


def test_under_pressure_the_youngest_yields_and_nothing_new_is_taken() -> None:
    ready = [Prefill("a", 10, True, 0, False), Prefill("b", 10, True, 1, False)]
    holding = [Holding("a", 5, 0, False), Holding("b", 5, 1, False)]
    got = plan(snapshot(ready, holding, short=True), EarlyBudget())
    assert got == Plan(give_up=("b",))


def test_incomplete_prompts_yield_before_complete_ones_and_one_stays() -> None:
    holding = (Holding("a", 5, 0, True), Holding("b", 5, 1, False), Holding("c", 5, 2, True), Holding("d", 5, 3, False))
    assert yields_first(holding) == ("d", "b", "c", "a")
    kept = snapshot([], list(holding[:1]), short=True)
    assert plan(kept, EarlyBudget()).give_up == (), "the oldest complete prompt stays for the one without room"


prefills = st.lists(st.tuples(st.integers(1, 400), st.booleans(), st.booleans()), max_size=8).map(
    lambda rows: [Prefill(f"r{i}", p, c, i, done) for i, (p, c, done) in enumerate(rows)]
)


@given(
    ready=prefills,
    decoding=st.integers(0, 9),
    first=st.integers(0, 99),
    kv_free=st.integers(0, 2000),
    short=st.booleans(),
    tokens=st.integers(0, 128),
    rows=st.integers(0, 6),
)
def test_what_every_plan_keeps_to(
    ready: list[Prefill], decoding: int, first: int, kv_free: int, short: bool, tokens: int, rows: int
) -> None:
    holding = [Holding(p.rid, 5, p.order, p.complete) for p in ready if p.has_row]
    limits = EarlyBudget(tokens=tokens, rows=rows, reserve=0.25)
    seen = snapshot(ready, holding, decoding=decoding, first=first, kv_free=kv_free, short=short)
    got = plan(seen, limits)
    assert got == plan(seen, limits), "equal snapshots give equal plans"
    by_rid = {p.rid: p for p in ready}
    total = sum(count for _, count in got.early)
    assert total <= kv_free * 0.75
    first += sum(p.pending for p in ready if p.complete)
    assert not (decoding or first) or total <= max(tokens - first, tokens // 4)
    assert all(0 < count <= by_rid[rid].pending and not by_rid[rid].complete for rid, count in got.early)
    new_rows = sum(not by_rid[rid].has_row for rid, _ in got.early)
    assert not new_rows or new_rows + len(holding) <= rows
    assert set(got.urgent) == {p.rid for p in ready if p.complete} - set(got.give_up)
    assert not (short and got.early)
    oldest = min((h.order for h in holding if h.complete), default=None)
    assert len(got.give_up) == (short and any(h.order != oldest for h in holding))
