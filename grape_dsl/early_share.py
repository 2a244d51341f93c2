"""Stats of a graph: its counts and depth, and how much of each prompt can be prefilled early."""

from __future__ import annotations

from dataclasses import dataclass

from grape_dsl.graph.micro_task import EdgeKind, MicroTask, MicroTaskKind
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.graph.piece_text import excerpt, source_text
from grape_dsl.shared_text import SharedText, shared_texts

LOW_SHARE = 0.8
"""Below this share a prompt gets advice."""

CHARACTERS_PER_TOKEN = 4
"""What a token of an output counts in a graph whose unit is characters."""

_WORTH_MOVING = {"characters": 40, "tokens": 10}


@dataclass(frozen=True, slots=True)
class EarlyShare:
    """How much of one prompt can be prefilled before the last token of its upstream tasks appears.

    Upstream outputs count with their `max_tokens`, and not at all without one; inputs count
    nothing. Which of several upstream tasks ends last is not known before a run, so the worst case
    is taken: only a task that another one waits for is sure to end earlier.

    Args:
        early: size of that part, in the graph's unit.
        total: size of the whole prompt.
        share: `early / total`, 1.0 for an empty prompt.
        advice: what to move, if the share is low and moving helps.
    """

    task: str
    early: int
    total: int
    share: float
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of a graph.

    Args:
        micro_tasks: nodes by kind.
        edges: edges by kind.
        depth: decodes on the longest path.
        prompts: one entry per task, in topological order.
        shared_texts: long texts that several tasks use behind different beginnings.
    """

    tasks: int
    micro_tasks: dict[str, int]
    edges: dict[str, int]
    depth: int
    prompts: tuple[EarlyShare, ...]
    shared_texts: tuple[SharedText, ...]


def stats_of(graph: MicroTaskGraph) -> Stats:
    """Figures of a verified graph."""
    nodes = {kind.value: 0 for kind in MicroTaskKind}
    for node in graph.nodes():
        nodes[node.kind.value] += 1
    edges = {kind.value: 0 for kind in EdgeKind}
    for _, _, edge in graph.edges():
        edges[edge.kind.value] += 1
    order = graph.tasks()
    upstream = {task: tuple(dict.fromkeys(n.source.task for n in graph.chain(task) if n.source)) for task in order}
    depth: dict[str, int] = {}
    bit = {task: 1 << number for number, task in enumerate(order)}
    ancestors: dict[str, int] = {}
    for task in order:
        depth[task] = 1 + max((depth[u] for u in upstream[task]), default=0)
        ancestors[task] = 0
        for u in upstream[task]:
            ancestors[task] |= bit[u] | ancestors[u]
    prompts = []
    for task in order:
        earlier = 0
        for u in upstream[task]:
            earlier |= ancestors[u]
        last = [u for u in upstream[task] if not earlier & bit[u]]
        prompts.append(_early_share(graph, task, last))
    return Stats(
        tasks=len(order),
        micro_tasks=nodes,
        edges=edges,
        depth=max(depth.values(), default=0),
        prompts=tuple(prompts),
        shared_texts=tuple(shared_texts(graph)),
    )


def _early_share(graph: MicroTaskGraph, task: str, last: list[str]) -> EarlyShare:
    """`last`: the upstream tasks that may be the last one to end."""
    chain = graph.chain(task)[:-1]
    sizes = [_size(graph, node) for node in chain]
    total = sum(sizes)
    border = next((i for i, node in enumerate(chain) if node.source and node.source.task in last), None)
    if border is None:
        return EarlyShare(task, total, total, 1.0)
    early = sum(sizes[:border]) + max(0, sizes[border] - _last_chunk(graph, chain[border]))
    share = early / total if total else 1.0
    advice = tuple(_advice(graph, chain, border, last)) if share < LOW_SHARE else ()
    return EarlyShare(task, early, total, share, advice)


def _size(graph: MicroTaskGraph, node: MicroTask) -> int:
    if node.source is None:
        return node.size or 0
    return (graph[f"{node.source.task}/decode"].size or 0) * _per_token(graph)


def _last_chunk(graph: MicroTaskGraph, node: MicroTask) -> int:
    """The size of what comes with the last token: one chunk of a partial edge, all of a full one."""
    assert node.source is not None
    edge = graph.digraph.edges[f"{node.source.task}/decode", node.id]["edge"]
    return _size(graph, node) if edge.weight is None else edge.weight * _per_token(graph)


def _per_token(graph: MicroTaskGraph) -> int:
    return CHARACTERS_PER_TOKEN if graph.unit == "characters" else 1


def _advice(graph: MicroTaskGraph, chain: list[MicroTask], border: int, last: list[str]) -> list[str]:
    source = chain[border].source
    assert source is not None
    hole = source_text(graph, source)
    advice = []
    late = sum(node.size or 0 for node in chain[border + 1 :] if node.source is None)
    if late >= _WORTH_MOVING[graph.unit]:
        longest = max(chain[border + 1 :], key=lambda node: node.size or 0)
        advice.append(
            f"move the text behind {hole} in front of it, {late} {graph.unit}, such as {excerpt(longest.parts, 40)}"
        )
    behind = {n.source: None for n in chain[border + 1 :] if n.source and n.source.task != source.task}
    sure = [source_text(graph, s) for s in behind if s.task not in last]
    if sure:
        advice.append(f"put {', '.join(sure)} in front of {hole}, which is complete later")
    unsure = [source_text(graph, s) for s in behind if s.task in last]
    if unsure:
        advice.append(f"put the one that is complete last, of {', '.join([hole, *unsure])}, behind the others")
    return advice
