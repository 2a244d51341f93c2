"""Long texts that several prompts hold behind different beginnings."""

from __future__ import annotations

import time

from grape_dsl.early_share import stats_of
from grape_dsl.prompt_reading import raw, system, user
from grape_dsl.shared_text import shared_texts

LONG = "".join(f"Rule {n} says that every answer names its source. " for n in range(8))
OTHER = "".join(f"Note {n}: the reader is in a hurry and knows the field. " for n in range(8))


def summary(graph):
    return [(shared.size, shared.tasks, shared.saved) for shared in shared_texts(graph)]


def test_a_text_behind_different_beginnings(graph_of):
    graph = graph_of({"a": raw("Write. " + LONG), "b": raw("Judge. " + LONG), "c": raw("Name it. " + LONG + "Go.")})
    (found,) = shared_texts(graph)
    assert found.tasks == ("a", "b", "c")
    assert found.size == len(LONG)
    assert found.saved == 2 * len(LONG)
    assert LONG.startswith(found.text)
    assert len(found.text) == 80
    assert stats_of(graph).shared_texts == (found,)


def test_at_the_front_it_is_shared_already(graph_of):
    assert summary(graph_of({"a": raw(LONG + "Write."), "b": raw(LONG + "Judge.")})) == []


def test_equal_beginnings_count_once(graph_of):
    prompts = {"a": raw("Write. " + LONG), "b": raw("Write. " + LONG + "Now."), "c": raw("Judge. " + LONG)}
    assert summary(graph_of(prompts)) == [(len(LONG), ("a", "b", "c"), len(LONG))]


def test_short_texts_do_not_count(graph_of):
    assert summary(graph_of({"a": raw("Write. " + LONG[:190]), "b": raw("Judge. " + LONG[:190])})) == []


def test_a_hole_in_front_is_a_different_beginning(graph_of):
    prompts = {"a": raw("x"), "b": raw("{{a_out}}" + LONG), "c": raw(LONG)}
    assert summary(graph_of(prompts)) == [(len(LONG), ("b", "c"), len(LONG))]


def test_an_input_in_the_middle_cuts_the_text(graph_of):
    half = LONG[: len(LONG) // 2]
    assert summary(graph_of({"a": raw("Write. " + half + "{{q}}" + half), "b": raw("Judge. " + half + half)})) == []


def test_two_texts_of_different_tasks(graph_of):
    prompts = {
        "a": [system("Be kind."), user(LONG + OTHER)],
        "b": [system("Be strict."), user(LONG + OTHER)],
        "c": [user(OTHER)],
    }
    assert sorted(summary(graph_of(prompts))) == sorted(
        [(len(LONG), ("a", "b"), len(LONG)), (len(OTHER), ("a", "b", "c"), 2 * len(OTHER))]
    )


def test_time_is_linear_in_the_number_of_prompts(graph_of):
    """Many prompts with one long text: four times the prompts may not take anything like sixteen times as long."""

    def seconds(count: int) -> float:
        graph = graph_of({f"t{n}": raw(f"Task {n}. {LONG}") for n in range(count)})
        start = time.perf_counter()
        assert summary(graph) == [(len(LONG), tuple(sorted(f"t{n}" for n in range(count))), (count - 1) * len(LONG))]
        return time.perf_counter() - start

    small = min(seconds(100) for _ in range(3))
    assert min(seconds(400) for _ in range(3)) < 10 * small
