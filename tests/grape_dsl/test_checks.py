"""Whole-program rules, on programs made in Python, which have no spans, and on text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grape_dsl.checks import check
from grape_dsl.cycles import find_cycles
from grape_dsl.diagnostics import DiagnosticError, Severity
from grape_dsl.syntax import parse_text
from grape_dsl.task import Options, Timeout
from grape_dsl.variables import InputVar, IntermediateVar, OutputVar
from grape_dsl.workflow import Workflow


def workflow(**tasks: str) -> Workflow:
    """Task `a` writes OutputVar `a_out`, and so on, from the prompts given."""
    made = Workflow("made")
    for name, prompt in tasks.items():
        made.add_variable(f"{name}_out", OutputVar)
        made.add_task(name, prompt, task_output=f"{name}_out")
    return made


def codes(made: Workflow) -> list[str]:
    return [diagnostic.code for diagnostic in check(made)]


def test_a_right_program_has_no_findings():
    assert check(workflow(a="x", b="{{a_out}}")) == []


def test_bug_17_two_writers_are_both_named_and_shown():
    text = (
        "workflow w\nadd_variable(x, OutputVar)\n"
        'add_task(one, prompt = "1", task_output = x)\nadd_task(two, prompt = "2", task_output = x)\n'
    )
    with pytest.raises(DiagnosticError) as error:
        parse_text(text)
    (found,) = error.value.diagnostics
    assert found.code == "two-writers"
    assert "'one' and 'two'" in found.message
    assert [text[r.span.start : r.span.end] for r in found.related] == ["x", "x"]
    assert [r.span.line for r in found.related] == [3, 4]


def test_bug_18_cycle_is_refused_with_its_path():
    (found,) = check(workflow(a="{{b_out}}", b="{{a_out}}"))
    assert found.code == "cycle"
    assert "a -> b -> a" in found.message


def test_bug_18_diamond_is_no_cycle():
    assert check(workflow(a="x", b="{{a_out}}", c="{{a_out}}", d="{{b_out}}{{c_out}}")) == []


def test_bug_18_cycle_through_a_fragment():
    made = workflow(a="{{note}}", b="{{a_out}}")
    made.add_variable("note", IntermediateVar, value="so far: {{b_out}}")
    (found,) = check(made)
    assert found.code == "cycle"
    assert "a -> b -> note -> a" in found.message


def test_each_knot_is_reported_once_with_its_shortest_path():
    made = workflow(a="{{c_out}}{{a_out}}", b="{{a_out}}", c="{{b_out}}", d="{{d_out}}")
    assert [d.message.split(": ")[1] for d in check(made)] == ["a -> a", "d -> d"]


def test_recursive_value():
    made = workflow(a="{{p}}")
    made.add_variable("p", IntermediateVar, value="{{q}}")
    made.add_variable("q", IntermediateVar, value="{{p}}")
    (found,) = check(made)
    assert found.code == "recursive-value"
    assert "p -> q -> p" in found.message


def test_unknown_names_give_the_nearest():
    found = check(workflow(writer="x", b="{{writer_uot}} {{writer}}"))
    assert [d.code for d in found] == ["unknown-name", "unknown-name"]
    assert found[0].hint == "did you mean 'writer_out'?"
    assert "is a task" in found[1].hint


def test_unknown_output():
    made = workflow(a="x")
    made.add_task("b", "{{a_out}}", task_output="nowhere")
    assert codes(made) == ["unknown-name"]
    assert check(made, also_known={"nowhere"}) == []


def test_variables_without_a_writer():
    made = workflow(a="{{x}}")
    made.add_variable("x", IntermediateVar)
    made.add_variable("y", OutputVar)
    assert codes(made) == ["no-writer", "no-writer"]


def test_writing_an_input():
    made = workflow(a="{{x}}")
    made.add_variable("x", InputVar)
    made.add_task("b", "{{x}}", task_output="x")
    assert codes(made) == ["input-written", "unreachable-task"]


def test_value_and_writer():
    made = workflow(a="{{x}}")
    made.add_variable("x", IntermediateVar, value="v")
    made.add_task("b", "y", task_output="x")
    assert codes(made) == ["value-and-writer"]


def test_value_of_an_input_and_default_of_an_output():
    made = workflow(a="{{x}}")
    made.add_variable("x", InputVar, value="v")
    made.variables["a_out"] = made.variables["a_out"].__class__("a_out", OutputVar, default="d")
    assert sorted(codes(made)) == ["input-written", "not-supported"]


def test_unused_and_unreachable_are_warnings():
    made = workflow(a="x")
    made.add_variable("q", InputVar)
    made.add_variable("n", IntermediateVar)
    made.add_variable("m", IntermediateVar)
    made.add_task("first", "{{a_out}}", task_output="n")
    made.add_task("second", "{{n}}", task_output="m")
    found = check(made)
    assert {d.severity for d in found} == {Severity.WARNING}
    assert [d.code for d in found] == ["unused-variable", "unused-variable", "unreachable-task", "unreachable-task"]


def test_a_task_behind_an_output_fragment_is_reachable():
    made = Workflow("made")
    made.add_variable("x", IntermediateVar)
    made.add_variable("both", OutputVar, value="It is {{x}}")
    made.add_task("a", "q", task_output="x")
    assert check(made) == []


def test_no_tasks():
    assert codes(Workflow("empty")) == ["no-tasks"]


def test_empty_raw_prompt():
    from grape_dsl.prompt_reading import raw

    made = Workflow("made")
    made.add_variable("x", OutputVar)
    made.add_task("a", raw(""), task_output="x")
    assert codes(made) == ["empty-prompt"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_tokens", 0),
        ("max_tokens", True),
        ("max_tokens", 1.5),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("top_p", 0),
        ("top_p", 1.01),
        ("stop", ("",)),
        ("stop", ()),
        ("seed", -1),
        ("seed", 2**64),
        ("logprobs", -1),
        ("timeout", Timeout()),
        ("timeout", Timeout(run=0)),
    ],
)
def test_options_out_of_range(option: str, value: object):
    made = workflow(a="x")
    made.defaults = Options(**{option: value})
    assert codes(made) == ["bad-option"]
    assert option in check(made)[0].message


def test_single_braces_of_a_variable_are_a_warning():
    made = workflow(a='{"json": {q}} {other} {{q}}')
    made.add_variable("q", InputVar)
    (found,) = check(made)
    assert found.code == "single-braces"
    assert not found.is_error


def test_a_thousand_tasks_are_checked_quickly():
    made = Workflow("chain")
    made.add_variable("v0", InputVar)
    for i in range(1, 1001):
        made.add_variable(f"v{i}", OutputVar if i == 1000 else IntermediateVar)
        made.add_task(f"t{i}", f"{{{{v{i - 1}}}}}", task_output=f"v{i}")
    start = time.perf_counter()
    assert check(made) == []
    assert time.perf_counter() - start < 0.2


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3), min_size=1))
def test_cycles_are_cycles_and_all_knots_have_one(edges: dict[str, list[str]]):
    graph = {node: [s for s in edges.get(node, [])] for node in "abcdef"}
    cycles = find_cycles(graph)
    for path in cycles:
        assert len(set(path)) == len(path)
        for here, there in zip(path, [*path[1:], path[0]], strict=True):
            assert there in graph[here]
    for path in cycles:  # without one node of each cycle found, every other knot is still found once
        assert sum(bool(set(path) & set(other)) for other in cycles) == 1
    reach = {node: _reachable(graph, node) for node in graph}
    knots = {frozenset(m for m in reach[n] if n in reach[m]) for n in graph if n in reach[n]}
    assert len(cycles) == len(knots)


def _reachable(graph: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += graph[node]
    return found


def test_a_long_cycle_needs_no_recursion():
    size = 50_000
    (path,) = find_cycles({str(i): [str((i + 1) % size)] for i in range(size)})
    assert len(path) == size
