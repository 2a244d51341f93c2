"""The compiler: checks, passes, and the verifier behind each of them."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grape_dsl.cli.bench_compile import chain_program
from grape_dsl.compiler import compile
from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.graph.micro_task import EdgeKind, MicroTaskKind, Source
from grape_dsl.graph.verifier import Invariant, VerificationError, verify
from grape_dsl.lowering import measure, passes, pieces, split
from grape_dsl.prompt import references
from grape_dsl.syntax import parse_text
from grape_dsl.variables import InputVar, OutputVar
from grape_dsl.workflow import Workflow
from tests.strategies import workflows


@settings(max_examples=100, deadline=None)
@given(workflows(), st.integers(1, 64))
def test_random_programs_compile(program: Workflow, weight: int):
    compiled = compile(program, edge_weight=weight)
    graph = compiled.graph
    verify(graph, pieces.prompts_of(program))
    assert {edge.weight for _, _, edge in graph.edges() if edge.kind is EdgeKind.PARTIAL} <= {weight}
    for task in program.tasks.values():
        holes = [node.source for node in graph.chain(task.name) if node.source is not None]
        direct = [r for r in references(task.prompt) if not r.name.startswith(("in", "note"))]
        assert all(Source(r.name.replace("out", "task"), r.strip) in holes for r in direct)
        assert graph.chain(task.name)[-1].size == program.options(task).max_tokens


def test_errors_are_raised_and_warnings_kept():
    wrong = Workflow("wrong")
    wrong.add_variable("q", InputVar)
    wrong.add_variable("a", OutputVar)
    wrong.add_task("t", "{{q}} {{qq}}", task_output="a")
    with pytest.raises(DiagnosticError) as caught:
        compile(wrong)
    assert [d.code for d in caught.value.diagnostics] == ["unknown-name"]

    warned = Workflow("warned")
    warned.add_variable("q", InputVar)
    warned.add_variable("a", OutputVar)
    warned.add_task("t", "{{q}} {q}", task_output="a")
    assert [d.code for d in compile(warned).diagnostics] == ["single-braces"]


def loses_a_part(graph, *_):
    node = next(n for n in graph.nodes() if n.kind is MicroTaskKind.STATIC_PREFILL)
    graph.add(replace(node, parts=(*node.parts, "more")))


@pytest.mark.parametrize("broken", ["split", "measure"])
def test_the_verifier_runs_after_every_pass(monkeypatch, broken):
    """A pass that spoils the graph is found right after it, before the next one sees the graph."""
    ran = []

    def spoiled_split(*arguments):
        graph = split.split(*arguments)
        if broken == "split":
            loses_a_part(graph)
        return graph

    def spoiled_measure(graph, counter):
        ran.append("measure")
        measure.measure(graph, counter)
        loses_a_part(graph)

    monkeypatch.setattr(passes, "split", spoiled_split)
    monkeypatch.setattr(passes, "measure", spoiled_measure)
    program = Workflow("fine")
    program.add_variable("a", OutputVar)
    program.add_task("t", "text", task_output="a")
    with pytest.raises(VerificationError) as caught:
        compile(program)
    assert caught.value.invariant is Invariant.PROMPT
    assert ran == ([] if broken == "split" else ["measure"])


def test_a_chain_of_a_thousand_tasks():
    program = parse_text(chain_program(1000)).workflow
    start = time.perf_counter()
    graph = compile(program).graph
    assert time.perf_counter() - start < 5  # far above what it takes, far below what a quadratic pass would
    assert len(graph) == 1000 * 4 - 2
    assert graph.tasks() == [f"t{n}" for n in range(1, 1001)]
