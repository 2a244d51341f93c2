"""The verifier: what always holds for a micro-task graph. It runs after every pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import networkx as nx

from grape_dsl.graph.micro_task import Edge, EdgeKind, MicroTask, MicroTaskKind, Piece
from grape_dsl.graph.micro_task_graph import MicroTaskGraph


class Invariant(StrEnum):
    """`content`: a node holds what its kind computes. `one-decode`: a task has exactly one decode.
    `strong-chain`: strong edges join the nodes of a task in one row that its decode ends, and no two tasks.
    `kind-order`: known text is static before the first late output and suffix behind it, never two in a row.
    `prompt`: the prefill nodes of a task, joined, are its prompt. `source`: partial and full edges leave a
    decode and feed a dynamic prefill, and each dynamic prefill has exactly one, from the task it names.
    `weight`: partial edges have a weight of at least 1, others none. `acyclic`: no task waits for itself.
    """

    CONTENT = "content"
    ONE_DECODE = "one-decode"
    STRONG_CHAIN = "strong-chain"
    KIND_ORDER = "kind-order"
    PROMPT = "prompt"
    SOURCE = "source"
    WEIGHT = "weight"
    ACYCLIC = "acyclic"


class VerificationError(Exception):
    """A graph breaks `invariant` at micro-tasks `nodes`: a fault of the pass that built it, not of the program."""

    def __init__(self, invariant: Invariant, message: str, nodes: Sequence[str]):
        self.invariant = invariant
        self.nodes = tuple(nodes)
        super().__init__(f"invariant {invariant.value!r} is broken at {', '.join(self.nodes)}: {message}")


def verify(graph: MicroTaskGraph, prompts: Mapping[str, Sequence[Piece]] | None = None) -> None:
    """Check every invariant.

    Args:
        prompts: the pieces of each task's prompt; without them `prompt` is not checked.

    Raises:
        VerificationError: naming the first invariant that is broken.
    """
    _check_content(graph)
    chains = _check_chains(graph)
    for chain in chains.values():
        _check_kind_order(chain)
    _check_sources(graph)
    _check_weights(graph)
    if not nx.is_directed_acyclic_graph(graph.digraph):
        cycle = [source for source, _ in nx.find_cycle(graph.digraph)]
        raise VerificationError(Invariant.ACYCLIC, "these micro-tasks wait for one another", cycle)
    if prompts is not None:
        _check_prompts(chains, prompts)


def _check_content(graph: MicroTaskGraph) -> None:
    for key in graph.digraph:
        node = graph.digraph.nodes[key].get("micro_task")
        if not isinstance(node, MicroTask) or node.id != key or not key.startswith(f"{node.task}/"):
            raise VerificationError(Invariant.CONTENT, "a node's key must be the id of a micro-task of its task", [key])
        dynamic = node.kind is MicroTaskKind.DYNAMIC_PREFILL
        known = node.kind in (MicroTaskKind.STATIC_PREFILL, MicroTaskKind.SUFFIX_PREFILL)
        decode = node.kind is MicroTaskKind.DECODE
        if (node.source is not None, bool(node.parts), node.output is not None) != (dynamic, known, decode):
            what = "a source" if dynamic else "parts" if known else "an output"
            raise VerificationError(Invariant.CONTENT, f"a {node.kind.value} must have {what} and nothing else", [key])
        if node.size is not None and node.size < 0:
            raise VerificationError(Invariant.CONTENT, f"its size is {node.size}", [key])


def _check_chains(graph: MicroTaskGraph) -> dict[str, list[MicroTask]]:
    """The nodes of each task in prompt order, found without trusting the graph."""
    members: dict[str, list[MicroTask]] = {}
    for node in graph.nodes():
        members.setdefault(node.task, []).append(node)
    chains = {}
    for task, nodes in members.items():
        decodes = [n.id for n in nodes if n.kind is MicroTaskKind.DECODE]
        if len(decodes) != 1:
            raise VerificationError(
                Invariant.ONE_DECODE, f"task {task!r} has {len(decodes)} decodes", decodes or [nodes[0].id]
            )
        chains[task] = list(_walk_back(graph, graph[decodes[0]]))[::-1]
        left_over = {n.id for n in nodes} - {n.id for n in chains[task]}
        if left_over:
            message = f"they are not in the row that leads to the decode of task {task!r}"
            raise VerificationError(Invariant.STRONG_CHAIN, message, sorted(left_over))
    return chains


def _walk_back(graph: MicroTaskGraph, decode: MicroTask) -> Iterator[MicroTask]:
    node, seen = decode, {decode.id}
    if any(edge.kind is EdgeKind.STRONG for _, edge in _out(graph, decode.id)):
        raise VerificationError(
            Invariant.STRONG_CHAIN, "a strong edge leaves a decode, which ends its row", [decode.id]
        )
    while True:
        yield node
        before = [graph[key] for key, edge in _in(graph, node.id) if edge.kind is EdgeKind.STRONG]
        if not before:
            return
        if len(before) > 1 or before[0].task != node.task or before[0].id in seen:
            message = "a micro-task follows at most one other, of the same task, by a strong edge"
            raise VerificationError(Invariant.STRONG_CHAIN, message, [*(n.id for n in before), node.id])
        node = before[0]
        seen.add(node.id)


def _check_kind_order(chain: Sequence[MicroTask]) -> None:
    known_before = late_before = False
    for node in chain[:-1]:
        known = node.kind is not MicroTaskKind.DYNAMIC_PREFILL
        if known and (node.kind is MicroTaskKind.SUFFIX_PREFILL) != late_before:
            where = "behind" if late_before else "before"
            raise VerificationError(
                Invariant.KIND_ORDER, f"a {node.kind.value} stands {where} the first late output", [node.id]
            )
        if known and known_before:
            raise VerificationError(Invariant.KIND_ORDER, "known text is cut in two without a late output", [node.id])
        known_before, late_before = known, late_before or not known


def _check_sources(graph: MicroTaskGraph) -> None:
    for source, target, edge in graph.edges():
        if edge.kind is EdgeKind.STRONG:
            continue
        ends = (graph[source].kind, graph[target].kind)
        if ends != (MicroTaskKind.DECODE, MicroTaskKind.DYNAMIC_PREFILL):
            message = f"a {edge.kind.value} edge leads from a decode to a dynamic_prefill, not {ends[0]} to {ends[1]}"
            raise VerificationError(Invariant.SOURCE, message, [source, target])
    for node in graph.nodes():
        if node.source is None:
            continue
        feeding = [key for key, edge in _in(graph, node.id) if edge.kind is not EdgeKind.STRONG]
        if feeding != [f"{node.source.task}/decode"]:
            message = (
                f"it takes the output of task {node.source.task!r} and is fed by {', '.join(feeding) or 'nothing'}"
            )
            raise VerificationError(Invariant.SOURCE, message, [node.id])


def _check_weights(graph: MicroTaskGraph) -> None:
    for source, target, edge in graph.edges():
        if edge.kind is EdgeKind.PARTIAL and (edge.weight is None or edge.weight < 1):
            message = f"a partial edge needs a weight of at least 1, this one has {edge.weight}"
            raise VerificationError(Invariant.WEIGHT, message, [source, target])
        if edge.kind is not EdgeKind.PARTIAL and edge.weight is not None:
            raise VerificationError(
                Invariant.WEIGHT, f"a {edge.kind.value} edge has weight {edge.weight}", [source, target]
            )


def _check_prompts(chains: Mapping[str, Sequence[MicroTask]], prompts: Mapping[str, Sequence[Piece]]) -> None:
    if chains.keys() != prompts.keys():
        odd = sorted(chains.keys() ^ prompts.keys())
        raise VerificationError(Invariant.PROMPT, "these tasks are only in the graph or only in the program", odd)
    for task, chain in chains.items():
        joined = [piece for node in chain for piece in node.pieces]
        if joined != list(prompts[task]):
            message = f"the prefill nodes of task {task!r}, joined, are not its prompt"
            raise VerificationError(Invariant.PROMPT, message, [chain[-1].id])


def _in(graph: MicroTaskGraph, key: str) -> list[tuple[str, Edge]]:
    return [(source, data["edge"]) for source, data in graph.digraph.pred[key].items()]


def _out(graph: MicroTaskGraph, key: str) -> list[tuple[str, Edge]]:
    return [(target, data["edge"]) for target, data in graph.digraph.succ[key].items()]
