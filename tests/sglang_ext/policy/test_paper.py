"""The policy `paper`: worked examples on a machine with whole numbers."""

from __future__ import annotations

from typing import Any

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.snapshot import Snapshot
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.steps import complete, decode, prefill, snapshot

# 40 ms, and 1 ms for each row and each token: u is 41 ms.
MODEL = CostModel(fixed=0.040, row=0.001, token=0.001)


def pieces(seen: Snapshot, **values: Any) -> dict[str, int]:
    plan = new_policy("paper", Configuration(**{"weight": 1} | values), StepTimes(MODEL)).plan(seen)
    assert plan is not None
    return {piece.rid: piece.tokens for piece in plan.pieces}


def test_a_step_is_filled_up_to_the_tightest_slo() -> None:
    rows = [decode("a", tbt_s=0.1005, last_token_s=10.0), decode("b", tbt_s=0.2, last_token_s=10.0)]
    # 100.5 ms, less 40 and two rows, leave 58 tokens.
    assert pieces(snapshot([complete("p", 500)], rows)) == {"p": 58}


def test_the_budget_between_tokens_counts_from_the_last_one() -> None:
    rows = [decode("a", tbt_s=0.1005, last_token_s=9.98)]
    assert pieces(snapshot([complete("p", 500)], rows)) == {"p": 39}
    rows = [decode("a", tbt_s=0.1005)]
    assert pieces(snapshot([complete("p", 500)], rows)) == {"p": 59}


def test_a_missed_deadline_leaves_the_minimum() -> None:
    rows = [decode("late", tbt_s=0.05, last_token_s=9.9), decode("b", tbt_s=0.1005, last_token_s=10.0)]
    assert pieces(snapshot([complete("p", 500)], rows)) == {"p": 58}
    assert pieces(snapshot([complete("p", 500)], rows[:1])) == {}, "with all missed there is no region"


def test_decodes_that_do_not_fit_alone_leave_only_the_due() -> None:
    rows = [decode("a", tbt_s=0.001, last_token_s=10.0)]
    assert pieces(snapshot([complete("p", 500), complete("q", 500, 1)], rows)) == {}
    waiting = [complete("p", 500, waited=1), complete("q", 500, 1, waited=7)]
    assert pieces(snapshot(waiting, rows)) == {"p": 16}
    assert pieces(snapshot(waiting, rows), grant_tokens=10, grant_every=3) == {}


def test_decodes_without_an_slo_have_the_assumed_one() -> None:
    # Three steps of 41 ms are 123; less 41 they leave 82.
    assert pieces(snapshot([complete("p", 500)], [decode("a", last_token_s=10.0)]))["p"] in (81, 82)
    assert pieces(snapshot([complete("p", 500)], [decode("a", last_token_s=10.0)]), assumed_tbt=0.0) == {"p": 500}


def test_without_the_region_the_chunk_is_filled() -> None:
    rows = [decode("a", tbt_s=0.1, last_token_s=10.0)]
    assert pieces(snapshot([complete("p", 900)], rows, chunk=512), off=frozenset({"region"})) == {"p": 512}


def test_runs_take_turns_by_urgency() -> None:
    ready = [
        complete("a1", 20, 0, run="a", deadline_s=12.0),
        complete("a2", 20, 1, run="a", deadline_s=12.5),
        complete("b1", 20, 2, run="b", deadline_s=13.0),
        complete("b2", 20, 3, run="b", deadline_s=11.0),
    ]
    rows = [decode("d", tbt_s=0.1005, last_token_s=10.0)]
    # 59 tokens: one of each run, the urgent run first, then the most urgent of the second ones.
    assert list(pieces(snapshot(ready, rows), grant_tokens=20).items()) == [("b2", 20), ("a1", 20), ("a2", 19)]


def test_an_open_gap_is_more_urgent_than_a_first_token() -> None:
    ready = [complete("new", 90, 0, since_s=9.9), complete("next", 90, 1, since_s=9.99, stalled=True)]
    assert list(pieces(snapshot(ready, [decode("d")]))) == ["next", "new"]
    assert list(pieces(snapshot(ready, [decode("d")]), off=frozenset({"priority"}))) == ["new", "next"]


def test_a_short_prompt_does_not_wait_behind_a_long_one() -> None:
    ready = [complete("long", 900, 0, since_s=9.0), complete("short", 20, 1, since_s=9.9)]
    rows = [decode("d", tbt_s=0.1005, last_token_s=10.0)]
    assert pieces(snapshot(ready, rows)) == {"long": 39, "short": 20}


def test_several_long_prompts_are_in_progress_at_once() -> None:
    ready = [complete("a", 900, 0, since_s=9.0), complete("b", 900, 1, since_s=9.9)]
    rows = [decode("d", tbt_s=0.1005, last_token_s=10.0)]
    assert pieces(snapshot(ready, rows)) == {"a": 30, "b": 29}


def test_what_is_left_goes_out_by_distance() -> None:
    ready = [
        prefill("far", 30, 0, run="r", hops=2, rest_steps=50.0),
        prefill("near", 30, 1, run="r", hops=1, rest_steps=9.0),
        complete("c", 10, 2),
    ]
    rows = [decode("d", run="r", tbt_s=0.1005, last_token_s=10.0)]
    assert list(pieces(snapshot(ready, rows)).items()) == [("c", 10), ("near", 30), ("far", 19)]
    assert list(pieces(snapshot(ready, rows), off=frozenset({"priority"}))) == ["c", "far", "near"]
    assert pieces(snapshot(ready, rows), off=frozenset({"stage2"})) == {"c": 10}


def test_the_nearest_task_of_an_idle_run_is_its_head() -> None:
    """A run whose stream waits for something outside competes with the others in stage 1."""
    ready = [
        prefill("busy", 40, 0, run="busy", hops=1, rest_steps=9.0),
        prefill("idle-far", 40, 1, run="idle", hops=3, rest_steps=9.0),
        prefill("idle-near", 40, 2, run="idle", hops=2, rest_steps=9.0),
    ]
    rows = [decode("d", run="busy", tbt_s=0.1005, last_token_s=10.0)]
    assert pieces(snapshot(ready, rows)) == {"idle-near": 40, "busy": 19}


def test_streamed_pieces_are_not_smaller_than_the_edge_weight() -> None:
    rows = [decode("d", tbt_s=0.2, last_token_s=10.0)]
    ready = [prefill("few", 15, 0, hops=1), prefill("enough", 16, 1, hops=1), complete("last", 3, 2)]
    assert pieces(snapshot(ready, rows), weight=16) == {"last": 3, "enough": 16}
    assert pieces(snapshot(ready, rows), weight=16, off=frozenset({"edge_weight"})) == {
        "last": 3,
        "few": 15,
        "enough": 16,
    }
