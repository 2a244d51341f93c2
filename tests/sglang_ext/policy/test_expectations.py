"""What is expected of a run: hops, steps until a prompt is complete, lengths of outputs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.policy import output_lengths
from sglang_ext.policy.output_lengths import FIRST, FLOOR, OutputLengths
from sglang_ext.policy.priority import by_distance
from tests.sglang_ext.policy.distances import hops, rest_steps
from tests.sglang_ext.policy.steps import complete, prefill

#     plan -> search -> answer -> check
#        \________________^
RUN = {"plan": [], "search": ["plan"], "answer": ["plan", "search"], "check": ["answer"]}


def test_hops_count_decodes_one_behind_the_other() -> None:
    assert hops(RUN, ()) == {"plan": 0, "search": 1, "answer": 2, "check": 3}
    assert hops(RUN, {"plan"}) == {"search": 0, "answer": 1, "check": 2}
    assert hops(RUN, {"plan", "search", "answer"}) == {"check": 0}


def test_parallel_branches_count_once() -> None:
    run = {"a": [], "b": [], "c": [], "join": ["a", "b", "c"]}
    assert hops(run, ()) == {"a": 0, "b": 0, "c": 0, "join": 1}


def test_steps_follow_the_longest_branch() -> None:
    rest = {"plan": 10.0, "search": 5.0, "answer": 100.0, "check": 3.0}
    assert rest_steps(RUN, (), rest.__getitem__) == {"plan": 0.0, "search": 10.0, "answer": 15.0, "check": 115.0}


def test_long_chains_need_no_deep_stack() -> None:
    chain: dict[int, list[int]] = {i: [i - 1] if i else [] for i in range(5000)}
    assert hops(dict(reversed(chain.items())), ())[4999] == 4999


@given(st.integers(1, 12), st.data())
def test_hops_are_one_more_than_the_farthest_upstream(size: int, data: st.DataObject) -> None:
    run: Mapping[int, list[int]] = {
        i: data.draw(st.lists(st.sampled_from(range(i)), unique=True)) if i else [] for i in range(size)
    }
    ended: set[int] = set()
    for task in range(data.draw(st.integers(0, size))):
        ended.add(task)
    found = hops(run, ended)
    assert found.keys() == run.keys() - ended
    for task, distance in found.items():
        waits_for = [found[each] for each in run[task] if each not in ended]
        assert distance == (1 + max(waits_for) if waits_for else 0)


def test_the_order_by_distance() -> None:
    ready = [
        prefill("c", 1, 0, hops=2, rest_steps=1.0),
        prefill("b", 1, 1, hops=1, rest_steps=9.0),
        prefill("a", 1, 2, hops=1, rest_steps=2.0),
        complete("0", 1, 3),
    ]
    assert [each.rid for each in sorted(ready, key=by_distance)] == ["0", "a", "b", "c"]


def test_lengths_are_means_by_name() -> None:
    lengths = OutputLengths()
    assert lengths.mean("plan") == FIRST
    for tokens in (10, 20, 60):
        lengths.learn("plan", tokens)
    assert lengths.mean("plan") == pytest.approx(30.0)
    assert lengths.mean("other") == pytest.approx(30.0), "before its first output as long as all others"
    lengths.learn("other", 70)
    assert lengths.mean("other") == 70.0
    assert lengths.mean("other", most=32) == 32.0


def test_the_rest_has_a_floor_and_a_ceiling() -> None:
    lengths = OutputLengths()
    lengths.learn("plan", 100)
    assert lengths.rest("plan", 40) == 60.0
    assert lengths.rest("plan", 99) == lengths.rest("plan", 300) == 100 * FLOOR
    assert lengths.rest("plan", 40, most=64) == 24.0
    assert lengths.rest("plan", 64, most=64) == 0.0


def test_means_follow_and_names_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = OutputLengths()
    for _ in range(300):
        lengths.learn("plan", 10)
    for _ in range(300):
        lengths.learn("plan", 100)
    assert lengths.mean("plan") > 99
    monkeypatch.setattr(output_lengths, "NAMES", 2)
    for name in ("a", "plan", "b"):
        lengths.learn(name, 10)
    lengths.learn("c", 10)
    assert len(lengths._means) == 2
