"""Stats: counts, depth, the early share of prompts and what to move."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from grape_dsl.compiler import compile
from grape_dsl.early_share import CHARACTERS_PER_TOKEN, EarlyShare, stats_of
from grape_dsl.prompt_reading import raw
from grape_dsl.workflow import Workflow
from tests.strategies import workflows

TEXT = "Please read carefully and keep to the facts. "  # 45 characters


def share(graph, task: str) -> EarlyShare:
    (found,) = [prompt for prompt in stats_of(graph).prompts if prompt.task == task]
    return found


def test_counts_and_depth(graph_of):
    graph = graph_of({"a": raw("x"), "b": raw("pre {{a_out}} post"), "c": raw("{{a_out}}{{b_out}}")})
    stats = stats_of(graph)
    assert stats.tasks == 4
    assert stats.micro_tasks == {"static_prefill": 3, "dynamic_prefill": 3, "suffix_prefill": 1, "decode": 4}
    assert stats.edges == {"strong": 7, "partial": 3, "full": 0}
    assert stats.depth == 3
    assert [prompt.task for prompt in stats.prompts] == graph.tasks()


def test_a_prompt_without_late_text_is_all_early(graph_of):
    assert share(graph_of({"a": raw("12345")}), "a") == EarlyShare("a", 5, 5, 1.0)


def test_text_behind_the_hole_is_late(graph_of):
    late = share(graph_of({"a": raw("x"), "b": raw("{{a_out}}" + TEXT)}), "b")
    assert (late.early, late.total, late.share) == (0, 45, 0.0)
    assert late.advice == (
        'move the text behind {{a_out}} in front of it, 45 characters, such as "Please read caref... the facts. "',
    )


def test_text_in_front_is_early(graph_of):
    assert share(graph_of({"a": raw("x"), "b": raw(TEXT + "{{a_out}}")}), "b") == EarlyShare("b", 45, 45, 1.0)


def test_outputs_count_with_their_limit_less_the_last_chunk(graph_of):
    found = share(graph_of({"a": raw("x"), "b": raw(TEXT + "{{a_out}}")}, a=100), "b")
    assert found.total == 45 + 100 * CHARACTERS_PER_TOKEN
    assert found.early == 45 + (100 - 16) * CHARACTERS_PER_TOKEN
    short = share(graph_of({"a": raw("x"), "b": raw(TEXT + "{{a_out}}")}, a=10), "b")
    assert short.early == 45


def test_an_output_that_is_surely_complete_earlier_is_early(graph_of):
    prompts = {"a": raw("x"), "b": raw("{{a_out}}"), "c": raw("{{a_out}}" + TEXT + "{{b_out}}")}
    assert share(graph_of(prompts), "c").share == 1.0


def test_the_output_that_is_complete_last_belongs_behind(graph_of):
    prompts = {"a": raw("x"), "b": raw("{{a_out}}"), "c": raw("{{b_out}}{{a_out}}")}
    found = share(graph_of(prompts, a=100, b=17), "c")
    assert found.early == 1 * CHARACTERS_PER_TOKEN
    assert found.advice == ("put {{a_out}} in front of {{b_out}}, which is complete later",)


def test_of_parallel_outputs_the_first_counts_as_last(graph_of):
    prompts = {"a": raw("x"), "b": raw("y"), "c": raw("{{a_out}}{{b_out}}")}
    found = share(graph_of(prompts, a=32, b=32), "c")
    assert found.early == 16 * CHARACTERS_PER_TOKEN
    assert found.advice == ("put the one that is complete last, of {{a_out}}, {{b_out}}, behind the others",)


def test_a_second_use_of_the_last_output_is_late(graph_of):
    found = share(graph_of({"a": raw("x"), "b": raw("{{a_out}}" + TEXT + "{{a_out}}")}, a=16), "b")
    assert (found.early, found.total) == (0, 45 + 2 * 64)


@settings(max_examples=60, deadline=None)
@given(workflows())
def test_shares_of_random_programs(program: Workflow):
    graph = compile(program).graph
    stats = stats_of(graph)
    assert sum(stats.micro_tasks.values()) == len(graph)
    for prompt in stats.prompts:
        assert 0 <= prompt.early <= prompt.total
        assert prompt.share == pytest.approx(prompt.early / prompt.total if prompt.total else 1.0)
        if not any(node.source for node in graph.chain(prompt.task)):
            assert prompt.share == 1.0
