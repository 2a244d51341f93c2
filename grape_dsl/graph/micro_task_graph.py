"""MicroTaskGraph: a workflow lowered to micro-tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import networkx as nx

from grape_dsl.graph.micro_task import Edge, MicroTask, MicroTaskKind

Unit = Literal["characters", "tokens"]


@dataclass(slots=True)
class MicroTaskGraph:
    """A `networkx.DiGraph` of micro-tasks with typed access.

    Node keys are micro-task ids; node attribute `micro_task` holds a `MicroTask`, edge attribute
    `edge` an `Edge`. `grape_dsl.graph.verifier.verify` states what always holds.

    Args:
        workflow: name of the program.
        unit: what sizes count.
    """

    workflow: str
    unit: Unit = "characters"
    digraph: nx.DiGraph = field(default_factory=nx.DiGraph)

    def add(self, node: MicroTask) -> None:
        self.digraph.add_node(node.id, micro_task=node)

    def connect(self, source: str, target: str, edge: Edge) -> None:
        self.digraph.add_edge(source, target, edge=edge)

    def __getitem__(self, node_id: str) -> MicroTask:
        node: MicroTask = self.digraph.nodes[node_id]["micro_task"]
        return node

    def __len__(self) -> int:
        return len(self.digraph)

    def __eq__(self, other: object) -> bool:
        """Equal nodes and edges; the order in which they were added does not count."""
        if not isinstance(other, MicroTaskGraph):
            return NotImplemented
        return (
            (self.workflow, self.unit) == (other.workflow, other.unit)
            and {n.id: n for n in self.nodes()} == {n.id: n for n in other.nodes()}
            and {(a, b): e for a, b, e in self.edges()} == {(a, b): e for a, b, e in other.edges()}
        )

    def nodes(self) -> Iterator[MicroTask]:
        for _, data in self.digraph.nodes(data=True):
            yield data["micro_task"]

    def edges(self) -> Iterator[tuple[str, str, Edge]]:
        for source, target, data in self.digraph.edges(data=True):
            yield source, target, data["edge"]

    def chain(self, task: str) -> list[MicroTask]:
        """The nodes of `task` in prompt order, its decode last."""
        node, found = self[f"{task}/decode"], []
        while True:
            found.append(node)
            before = [p for p in self.digraph.predecessors(node.id) if self[p].task == task]
            if not before:
                return found[::-1]
            node = self[before[0]]

    def tasks(self) -> list[str]:
        """Task names in topological order, ties in the order of their names."""
        order = nx.lexicographical_topological_sort(self.digraph)
        return [self[n].task for n in order if self[n].kind is MicroTaskKind.DECODE]
