"""The graph for reading: tasks in topological order, each with its chain and what every node waits for."""

from __future__ import annotations

from collections.abc import Iterator

from grape_dsl.graph.micro_task import EdgeKind, MicroTask, MicroTaskKind
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.graph.piece_text import excerpt, source_text

_EXCERPT = 100


def to_text(graph: MicroTaskGraph) -> str:
    """Lines that end in a newline each."""
    tasks = graph.tasks()
    head = f"workflow {graph.workflow}: {len(tasks)} tasks, {len(graph)} micro-tasks, sizes in {graph.unit}"
    lines = [head]
    for task in tasks:
        lines.append("")
        lines.extend(_task(graph, task))
    return "\n".join(lines) + "\n"


def _task(graph: MicroTaskGraph, task: str) -> Iterator[str]:
    chain = graph.chain(task)
    reads = dict.fromkeys(n.source.task for n in chain if n.source is not None)
    after = f", after {', '.join(reads)}" if reads else ""
    yield f"task {task} writes {chain[-1].output}{after}"
    rows = []
    late = None
    for node in chain:
        text = f": {excerpt(node.parts, _EXCERPT)}" if node.parts else ""
        rows.append((node.id, node.kind.value, _size(node), _start(graph, node, late) + text))
        if node.source is not None:
            late = source_text(graph, node.source)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for key, kind, size, rest in rows:
        yield f"  {key:<{widths[0]}}  {kind:<{widths[1]}}  {size:>{widths[2]}}  {rest}"


def _size(node: MicroTask) -> str:
    if node.size is None:
        return "-"
    return f"<={node.size}" if node.kind is MicroTaskKind.DECODE else str(node.size)


def _start(graph: MicroTaskGraph, node: MicroTask, late: str | None) -> str:
    """When `node` may start; `late` is the last hole before it."""
    if node.kind is MicroTaskKind.STATIC_PREFILL:
        return "at once"
    if node.kind is MicroTaskKind.SUFFIX_PREFILL:
        return f"when {late} is complete"
    if node.kind is MicroTaskKind.DECODE:
        return "when its prompt is in"
    (source, edge), *_ = [
        (source, data["edge"])
        for source, _, data in graph.digraph.in_edges(node.id, data=True)
        if data["edge"].kind is not EdgeKind.STRONG
    ]
    assert node.source is not None
    how = f"in chunks of {edge.weight} tokens" if edge.kind is EdgeKind.PARTIAL else "in one piece"
    behind = f", once {late} is complete" if late else ""
    return f"as {source_text(graph, node.source)} comes from {source}, {how}{behind}"
