"""The graph as a diagram: Mermaid and DOT source text. Strong edges are solid, partial ones dashed, full ones thick."""

from __future__ import annotations

from grape_dsl.graph.micro_task import EdgeKind, MicroTask, MicroTaskKind
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.graph.piece_text import excerpt, source_text

_EXCERPT = 60
_COLORS = {
    MicroTaskKind.STATIC_PREFILL: "#dbeafe",
    MicroTaskKind.DYNAMIC_PREFILL: "#fef3c7",
    MicroTaskKind.SUFFIX_PREFILL: "#e9d5ff",
    MicroTaskKind.DECODE: "#dcfce7",
}


def to_mermaid(graph: MicroTaskGraph) -> str:
    """A Mermaid flowchart, one subgraph per task."""
    keys = _keys(graph)
    lines = ["flowchart LR"]
    for number, task in enumerate(graph.tasks()):
        lines.append(f'  subgraph t{number}["{_mermaid_text(task)}"]')
        for node in graph.chain(task):
            label = "<br/>".join(_mermaid_text(line) for line in _label(graph, node))
            lines.append(f'    {keys[node.id]}["{label}"]:::{node.kind.value}')
        lines.append("  end")
    arrows = {EdgeKind.STRONG: "-->", EdgeKind.PARTIAL: "-.->", EdgeKind.FULL: "==>"}
    for source, target, edge in graph.edges():
        weight = f"|{edge.weight}|" if edge.weight is not None else ""
        lines.append(f"  {keys[source]} {arrows[edge.kind]}{weight} {keys[target]}")
    lines.extend(f"  classDef {kind.value} fill:{color},stroke:#555" for kind, color in _COLORS.items())
    return "\n".join(lines) + "\n"


def to_dot(graph: MicroTaskGraph) -> str:
    """A Graphviz digraph, one cluster per task."""
    keys = _keys(graph)
    lines = [
        f"digraph {_dot_text(graph.workflow)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style=filled, fontname="sans-serif"];',
    ]
    for number, task in enumerate(graph.tasks()):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_dot_text(task)};")
        for node in graph.chain(task):
            label = _dot_text("\n".join(_label(graph, node)))
            lines.append(f'    {keys[node.id]} [label={label}, fillcolor="{_COLORS[node.kind]}"];')
        lines.append("  }")
    styles = {EdgeKind.STRONG: "solid", EdgeKind.PARTIAL: "dashed", EdgeKind.FULL: "bold"}
    for source, target, edge in graph.edges():
        weight = f", label={_dot_text(str(edge.weight))}" if edge.weight is not None else ""
        lines.append(f"  {keys[source]} -> {keys[target]} [style={styles[edge.kind]}{weight}];")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _keys(graph: MicroTaskGraph) -> dict[str, str]:
    """Short identifiers, because ids hold a slash."""
    return {node.id: f"n{number}" for number, node in enumerate(graph.nodes())}


def _label(graph: MicroTaskGraph, node: MicroTask) -> list[str]:
    if node.kind is MicroTaskKind.DECODE:
        return ["decode", f"writes {node.output}"]
    if node.source is not None:
        return [node.kind.value, source_text(graph, node.source)]
    return [f"{node.kind.value}, {node.size} {graph.unit}", excerpt(node.parts, _EXCERPT)]


def _mermaid_text(text: str) -> str:
    """Text inside a quoted Mermaid label, where entities are written with `#`."""
    return "".join(c if c.isalnum() or c in " _.,:;?!()'" else f"#{ord(c)};" for c in text)


def _dot_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
