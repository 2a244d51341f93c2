"""The policy `budget`: worked examples."""

from __future__ import annotations

from typing import Any

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.snapshot import Plan, Snapshot
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.steps import complete, decode, holding, prefill, snapshot


def pieces(seen: Snapshot, **values: Any) -> list[tuple[str, int]]:
    return [(piece.rid, piece.tokens) for piece in answer(seen, **values).pieces]


def answer(seen: Snapshot, **values: Any) -> Plan:
    plan = new_policy("budget", Configuration(**values), StepTimes(CostModel(fixed=0.04))).plan(seen)
    assert plan is not None
    return plan


def test_complete_prompts_first_and_whole() -> None:
    seen = snapshot([prefill("a", 500), complete("b", 900, 1)], [decode("d")])
    assert pieces(seen, budget=64) == [("b", 900), ("a", 16)]


def test_complete_prompts_leave_early_work_its_part_of_the_chunk() -> None:
    seen = snapshot([prefill("a", 500), complete("b", 900, 1)], [decode("d")], chunk=256)
    assert pieces(seen, budget=64) == [("b", 240), ("a", 16)]


def test_early_work_takes_what_complete_prompts_leave_of_the_budget() -> None:
    ready = [prefill("a", 500), complete("b", 20, 1), complete("ordinary", 10, 2)]
    assert pieces(snapshot(ready), budget=64) == [("b", 20), ("ordinary", 10), ("a", 34)]
    ready[2] = complete("ordinary", 900, 2)
    assert pieces(snapshot(ready), budget=64) == [("b", 20), ("ordinary", 900), ("a", 16)]


def test_the_budget_goes_to_the_oldest_first() -> None:
    seen = snapshot([prefill("a", 40), prefill("b", 40, 1), prefill("c", 40, 2)], [decode("d")])
    assert pieces(seen, budget=64) == [("a", 40), ("b", 24)]


def test_a_step_without_decodes_is_free_for_early_work() -> None:
    assert pieces(snapshot([prefill("a", 600)]), budget=64) == [("a", 600)]


def test_rows_are_limited_but_those_held_go_on() -> None:
    seen = [prefill("a", 10, has_row=True), prefill("b", 10, 1), prefill("c", 10, 2)]
    assert pieces(snapshot(seen, [decode("d")], rows_free=1)) == [("a", 10), ("b", 10)]
    assert pieces(snapshot(seen, [decode("d")], rows_free=0)) == [("a", 10)]


def test_under_pressure_one_yields_and_nothing_early_is_taken() -> None:
    ready = [prefill("a", 10, has_row=True), prefill("b", 10, 1, has_row=True)]
    held = [holding("a", 5), holding("b", 5, 1)]
    assert answer(snapshot(ready, [decode("d")], held, short=True)) == Plan(give_up=("b",))
