"""The verifier names each invariant that a graph breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grape_dsl.graph.micro_task import Edge, EdgeKind, MicroTask, MicroTaskKind, Source
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.graph.verifier import Invariant, VerificationError, verify

STRONG, PARTIAL = Edge(EdgeKind.STRONG), Edge(EdgeKind.PARTIAL, 16)
PROMPTS = {"a": ("hello",), "b": ("pre ", Source("a"), " post")}


def sound() -> MicroTaskGraph:
    """Task `a` with known text, task `b` with text around a's output."""
    graph = MicroTaskGraph("sound")
    graph.add(MicroTask("a/0", "a", MicroTaskKind.STATIC_PREFILL, parts=("hello",), size=5))
    graph.add(MicroTask("a/decode", "a", MicroTaskKind.DECODE, output="x"))
    graph.add(MicroTask("b/0", "b", MicroTaskKind.STATIC_PREFILL, parts=("pre ",), size=4))
    graph.add(MicroTask("b/1", "b", MicroTaskKind.DYNAMIC_PREFILL, source=Source("a")))
    graph.add(MicroTask("b/2", "b", MicroTaskKind.SUFFIX_PREFILL, parts=(" post",), size=5))
    graph.add(MicroTask("b/decode", "b", MicroTaskKind.DECODE, output="y"))
    for source, target in [("a/0", "a/decode"), ("b/0", "b/1"), ("b/1", "b/2"), ("b/2", "b/decode")]:
        graph.connect(source, target, STRONG)
    graph.connect("a/decode", "b/1", PARTIAL)
    return graph


def change(graph: MicroTaskGraph, key: str, **fields) -> None:
    graph.add(replace(graph[key], **fields))


def cut(graph: MicroTaskGraph, source: str, target: str) -> None:
    graph.digraph.remove_edge(source, target)


def test_a_sound_graph_passes():
    verify(sound(), PROMPTS)


def content_wrong_key(g):
    g.digraph.nodes["b/2"]["micro_task"] = replace(g["b/2"], id="b/7")


def content_static_with_source(g):
    change(g, "b/0", source=Source("a"))


def content_dynamic_without_source(g):
    change(g, "b/1", source=None)


def content_empty_suffix(g):
    change(g, "b/2", parts=())


def content_decode_without_output(g):
    change(g, "b/decode", output=None)


def content_negative_size(g):
    change(g, "b/0", size=-1)


def one_decode_none(g):
    g.digraph.remove_node("b/decode")


def one_decode_two(g):
    g.add(MicroTask("b/again", "b", MicroTaskKind.DECODE, output="z"))
    g.connect("b/decode", "b/again", STRONG)


def strong_chain_cut(g):
    cut(g, "b/1", "b/2")


def strong_chain_fork(g):
    g.add(MicroTask("b/3", "b", MicroTaskKind.SUFFIX_PREFILL, parts=("more",)))
    g.connect("b/1", "b/3", STRONG)


def strong_chain_join(g):
    g.connect("b/0", "b/2", STRONG)


def strong_chain_across_tasks(g):
    g.connect("b/0", "a/0", STRONG)


def strong_chain_behind_decode(g):
    g.connect("a/decode", "b/0", STRONG)


def strong_chain_loop(g):
    g.connect("b/2", "b/0", STRONG)


def kind_order_suffix_first(g):
    change(g, "b/0", kind=MicroTaskKind.SUFFIX_PREFILL)


def kind_order_static_behind(g):
    change(g, "b/2", kind=MicroTaskKind.STATIC_PREFILL)


def kind_order_cut_in_two(g):
    cut(g, "b/2", "b/decode")
    g.add(MicroTask("b/3", "b", MicroTaskKind.SUFFIX_PREFILL, parts=("more",)))
    g.connect("b/2", "b/3", STRONG)
    g.connect("b/3", "b/decode", STRONG)


def source_leaves_a_prefill(g):
    g.connect("a/0", "b/1", PARTIAL)


def source_feeds_known_text(g):
    g.connect("a/decode", "b/2", PARTIAL)


def source_missing(g):
    cut(g, "a/decode", "b/1")


def source_of_another_task(g):
    change(g, "b/1", source=Source("b"))


def weight_missing(g):
    g.connect("a/decode", "b/1", Edge(EdgeKind.PARTIAL))


def weight_zero(g):
    g.connect("a/decode", "b/1", Edge(EdgeKind.PARTIAL, 0))


def weight_on_strong(g):
    g.connect("b/0", "b/1", Edge(EdgeKind.STRONG, 4))


def weight_on_full(g):
    g.connect("a/decode", "b/1", Edge(EdgeKind.FULL, 4))


def acyclic_itself(g):
    change(g, "b/1", source=Source("b"))
    cut(g, "a/decode", "b/1")
    g.connect("b/decode", "b/1", PARTIAL)


def prompt_other_text(g):
    change(g, "b/2", parts=(" other",))


def prompt_other_transform(g):
    change(g, "b/1", source=Source("a", strip=True))


def prompt_missing_task(g):
    g.digraph.remove_nodes_from(["b/0", "b/1", "b/2", "b/decode"])


FAULTS = [
    (Invariant.CONTENT, content_wrong_key),
    (Invariant.CONTENT, content_static_with_source),
    (Invariant.CONTENT, content_dynamic_without_source),
    (Invariant.CONTENT, content_empty_suffix),
    (Invariant.CONTENT, content_decode_without_output),
    (Invariant.CONTENT, content_negative_size),
    (Invariant.ONE_DECODE, one_decode_none),
    (Invariant.ONE_DECODE, one_decode_two),
    (Invariant.STRONG_CHAIN, strong_chain_cut),
    (Invariant.STRONG_CHAIN, strong_chain_fork),
    (Invariant.STRONG_CHAIN, strong_chain_join),
    (Invariant.STRONG_CHAIN, strong_chain_across_tasks),
    (Invariant.STRONG_CHAIN, strong_chain_behind_decode),
    (Invariant.STRONG_CHAIN, strong_chain_loop),
    (Invariant.KIND_ORDER, kind_order_suffix_first),
    (Invariant.KIND_ORDER, kind_order_static_behind),
    (Invariant.KIND_ORDER, kind_order_cut_in_two),
    (Invariant.SOURCE, source_leaves_a_prefill),
    (Invariant.SOURCE, source_feeds_known_text),
    (Invariant.SOURCE, source_missing),
    (Invariant.SOURCE, source_of_another_task),
    (Invariant.WEIGHT, weight_missing),
    (Invariant.WEIGHT, weight_zero),
    (Invariant.WEIGHT, weight_on_strong),
    (Invariant.WEIGHT, weight_on_full),
    (Invariant.ACYCLIC, acyclic_itself),
    (Invariant.PROMPT, prompt_other_text),
    (Invariant.PROMPT, prompt_other_transform),
    (Invariant.PROMPT, prompt_missing_task),
]


@pytest.mark.parametrize(("invariant", "fault"), FAULTS, ids=[f.__name__ for _, f in FAULTS])
def test_a_broken_invariant_is_named(invariant, fault):
    graph = sound()
    fault(graph)
    with pytest.raises(VerificationError) as caught:
        verify(graph, PROMPTS)
    assert caught.value.invariant is invariant
    assert caught.value.nodes
    assert invariant.value in str(caught.value)


def test_every_invariant_has_a_fault():
    assert {invariant for invariant, _ in FAULTS} == set(Invariant)


def test_without_prompts_the_text_is_not_compared():
    graph = sound()
    prompt_other_text(graph)
    verify(graph)
