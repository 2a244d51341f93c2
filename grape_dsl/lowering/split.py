"""Pass 1: each prompt becomes a chain of prefill nodes with its decode behind, each hole a partial edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from grape_dsl.graph.micro_task import Edge, EdgeKind, KnownPart, MicroTask, MicroTaskKind, Piece, Source
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.workflow import Workflow


def split(workflow: Workflow, prompts: Mapping[str, Sequence[Piece]], edge_weight: int) -> MicroTaskGraph:
    """The graph of `workflow`, sizes of known text not yet set; `prompts` holds the pieces of every task."""
    graph = MicroTaskGraph(workflow.name)
    strong = Edge(EdgeKind.STRONG)
    for task in workflow.tasks.values():
        limit = workflow.options(task).max_tokens
        decode = MicroTask(f"{task.name}/decode", task.name, MicroTaskKind.DECODE, size=limit, output=task.output)
        chain = [*_prefills(task.name, prompts[task.name]), decode]
        for node in chain:
            graph.add(node)
        for before, after in pairwise(chain):
            graph.connect(before.id, after.id, strong)
    partial = Edge(EdgeKind.PARTIAL, edge_weight)
    for node in list(graph.nodes()):
        if node.source is not None:
            graph.connect(f"{node.source.task}/decode", node.id, partial)
    return graph


def _prefills(task: str, pieces: Iterable[Piece]) -> Iterator[MicroTask]:
    """A node for each hole and for each stretch of known pieces; the stretch before the first hole is static."""
    kind = MicroTaskKind.STATIC_PREFILL
    for index, stretch in enumerate(_stretches(pieces)):
        node_id = f"{task}/{index}"
        if isinstance(stretch, Source):
            kind = MicroTaskKind.SUFFIX_PREFILL
            yield MicroTask(node_id, task, MicroTaskKind.DYNAMIC_PREFILL, source=stretch)
        else:
            yield MicroTask(node_id, task, kind, parts=stretch)


def _stretches(pieces: Iterable[Piece]) -> Iterator[tuple[KnownPart, ...] | Source]:
    known: list[KnownPart] = []
    for piece in pieces:
        if not isinstance(piece, Source):
            known.append(piece)
            continue
        if known:
            yield tuple(known)
            known = []
        yield piece
    if known:
        yield tuple(known)
