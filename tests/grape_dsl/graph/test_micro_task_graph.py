"""MicroTaskGraph: equality, chains, order of tasks."""

from __future__ import annotations

import heapq
from dataclasses import replace

from hypothesis import given, settings

from grape_dsl.compiler import compile
from grape_dsl.graph.micro_task import Edge, EdgeKind
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.prompt_reading import raw
from grape_dsl.workflow import Workflow
from tests.strategies import workflows


def copied(graph: MicroTaskGraph) -> MicroTaskGraph:
    """The same graph, put together in the opposite order."""
    made = MicroTaskGraph(graph.workflow, graph.unit)
    for node in reversed(list(graph.nodes())):
        made.add(node)
    for source, target, edge in reversed(list(graph.edges())):
        made.connect(source, target, edge)
    return made


def test_equality(graph_of):
    graph = graph_of({"a": raw("x"), "b": raw("pre {{a_out}}")})
    assert copied(graph) == graph
    other = copied(graph)
    other.connect("a/decode", "b/1", Edge(EdgeKind.PARTIAL, 3))
    assert other != graph
    other = copied(graph)
    other.add(replace(other["b/0"], parts=("post",)))
    assert other != graph
    other = copied(graph)
    other.unit = "tokens"
    assert other != graph
    other = copied(graph)
    other.digraph.remove_edge("b/0", "b/1")
    assert other != graph
    assert graph != "graph"


def test_chain(graph_of):
    graph = graph_of({"a": raw("x"), "b": raw("{{a_out}} and {{a_out}} again")})
    assert [node.id for node in graph.chain("b")] == ["b/0", "b/1", "b/2", "b/3", "b/decode"]
    assert len(graph) == 9


@settings(max_examples=60, deadline=None)
@given(workflows())
def test_tasks_stand_in_topological_order_ties_by_name(program: Workflow):
    graph = compile(program).graph
    waits = {task: {node.source.task for node in graph.chain(task) if node.source} for task in program.tasks}
    expected: list[str] = []
    ready = sorted(task for task, upstream in waits.items() if not upstream)
    while ready:
        done = heapq.heappop(ready)
        expected.append(done)
        for task, upstream in waits.items():
            if done in upstream and upstream <= set(expected):
                heapq.heappush(ready, task)
    assert graph.tasks() == expected
