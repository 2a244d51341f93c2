"""The policy `deadline`: worked examples on machines with whole numbers."""

from __future__ import annotations

from typing import Any

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.snapshot import Snapshot
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.steps import complete, decode, prefill, snapshot

# Up to 100 tokens of a step cost nothing, then each 1 ms: with one row the ridge of 5% is at 101 tokens.
HIDING = CostModel(fixed=0.040, knee=100.0, beyond=0.001)
# 40 ms, and 1 ms for each token.
ADDITIVE = CostModel(fixed=0.040, token=0.001)
ROW = decode("d", last_token_s=10.0)


def pieces(seen: Snapshot, model: CostModel = ADDITIVE, **values: Any) -> dict[str, int]:
    plan = new_policy("deadline", Configuration(**{"weight": 1} | values), StepTimes(model)).plan(seen)
    assert plan is not None
    return {piece.rid: piece.tokens for piece in plan.pieces}


def test_a_step_is_filled_to_the_ridge() -> None:
    seen = snapshot([prefill("a", 500, hops=1, rest_steps=1000.0)], [ROW])
    assert pieces(seen, HIDING) == {"a": 101}
    assert pieces(seen, HIDING, ridge_share=0.1) == {"a": 103}
    assert pieces(seen, HIDING, off=frozenset({"ridge"})) == {"a": 4}, "500 tokens within 140 steps"


def test_nothing_is_free_where_every_token_costs() -> None:
    """Two tokens below 5% are no room: only the deadline counts."""
    seen = snapshot([prefill("a", 500, hops=1, rest_steps=1000.0)], [ROW])
    assert pieces(seen) == {"a": 4}
    assert pieces(seen, hurry=1.0) == {"a": 1}


def test_the_rate_is_what_the_tightest_deadlines_ask_for() -> None:
    ready = [
        prefill("a", 70, 0, hops=1, rest_steps=20.0, to_come=14),  # 84 within 14 steps: 6
        prefill("b", 56, 1, hops=2, rest_steps=40.0),  # 140 within 28: 5
    ]
    assert pieces(snapshot(ready, [ROW]), hurry=1.0) == {"a": 6}
    ready[1] = prefill("b", 140, 1, hops=2, rest_steps=40.0)  # 224 within 28: 8
    assert pieces(snapshot(ready, [ROW]), hurry=1.0) == {"a": 8}


def test_beyond_the_free_room_only_for_what_is_needed_soon() -> None:
    soon = prefill("a", 500, hops=1, rest_steps=4.0)  # within 2.8 steps
    assert pieces(snapshot([soon], [ROW]), HIDING) == {"a": 178}
    assert pieces(snapshot([soon], [ROW]), HIDING, soon_steps=3.0) == {"a": 101}
    assert pieces(snapshot([prefill("a", 500, hops=2, rest_steps=4.0)], [ROW]), HIDING) == {"a": 101}
    assert pieces(snapshot([complete("a", 500, since_s=7.0)], [ROW]), HIDING) == {"a": 178}


def test_without_deadlines_only_the_ridge_counts() -> None:
    seen = snapshot([complete("a", 500, stalled=True, since_s=10.0)], [ROW])
    assert pieces(seen, HIDING, off=frozenset({"deadlines"})) == {"a": 101}
    # Due at once, but the SLO of 120 ms cuts it.
    assert pieces(seen, HIDING) == {"a": 178}


def test_a_stalled_prompt_is_due_at_once() -> None:
    assert pieces(snapshot([complete("a", 60, stalled=True, since_s=10.0)], [ROW])) == {"a": 60}


def test_the_slo_cuts_the_rate() -> None:
    row = decode("d", tbt_s=0.0905, last_token_s=10.0)
    assert pieces(snapshot([complete("a", 600, stalled=True, since_s=10.0)], [row])) == {"a": 50}
    assert pieces(snapshot([complete("a", 600, stalled=True, since_s=10.0)], [row]), off=frozenset({"region"})) == {
        "a": 600
    }


def test_stalled_ones_first_then_late_runs_then_by_deadline() -> None:
    ready = [
        complete("new", 70, 0, since_s=9.9),
        prefill("soon", 70, 1, hops=1, rest_steps=4.0),
        prefill("later", 70, 2, hops=1, rest_steps=400.0),
        complete("stalled-long", 90, 3, stalled=True, since_s=9.0),
        complete("stalled-short", 70, 4, stalled=True, since_s=9.0),
        complete("late", 70, 5, since_s=5.0, deadline_s=6.0),
    ]
    seen = snapshot(ready)
    assert list(pieces(seen)) == ["stalled-short", "stalled-long", "late", "soon", "new", "later"]
    assert list(pieces(seen, off=frozenset({"priority"}))) == [each.rid for each in ready]


def test_the_time_to_a_first_token_is_a_deadline() -> None:
    # 1 s left: 0.8 of it are 20 steps of 40 ms, and a fifth of those 4.
    assert pieces(snapshot([complete("a", 200, since_s=9.0, deadline_s=11.0)], [ROW]), hurry=1.0) == {"a": 10}
    assert pieces(snapshot([complete("a", 200, since_s=9.0, deadline_s=11.0)], [ROW])) == {"a": 50}


def test_a_first_token_goes_before_its_runs_later_prompts_where_no_room_is_free() -> None:
    ready = [complete("first", 100, 0, run="r", since_s=9.9), prefill("next", 100, 1, run="r", hops=1, rest_steps=4.0)]
    assert list(pieces(snapshot(ready, [ROW]))) == ["first"]
    assert list(pieces(snapshot(ready, [ROW]), HIDING)) == ["next", "first"]


def test_a_short_prompt_goes_before_a_long_one() -> None:
    ready = [complete("long", 900, 0, since_s=9.0), complete("short", 20, 1, since_s=9.9)]
    assert list(pieces(snapshot(ready, [ROW]))) == ["short", "long"]


def test_without_decodes_the_step_is_free() -> None:
    ready = [complete("a", 300), prefill("b", 300, 1, hops=1, rest_steps=5.0)]
    assert sum(pieces(snapshot(ready, [], chunk=512)).values()) == 512


def test_where_kv_is_scarce_only_the_next_task_is_looked_at() -> None:
    ready = [prefill("next", 20, 0, hops=1, rest_steps=2.0), prefill("later", 20, 1, hops=2, rest_steps=2.0)]
    roomy = snapshot(ready, [decode("d", 400, last_token_s=10.0)], kv_free=400)
    assert set(pieces(roomy)) == {"next", "later"}
    scarce = snapshot(ready, [decode("d", 4000, last_token_s=10.0)], kv_free=400)
    assert set(pieces(scarce)) == {"next"}
