"""Cycles of a graph, each with its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def find_cycles(successors: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """One cycle for each knot of nodes that reach each other, as the path without its repeated end.

    Linear in nodes and edges, and without recursion. Every successor must be a key.
    """
    order = {name: place for place, name in enumerate(successors)}
    cycles: list[list[str]] = []
    for knot in _knots(successors):
        if len(knot) > 1 or knot[0] in successors[knot[0]]:
            cycles.append(_shortest(knot, successors, order))
    return cycles


def _shortest(knot: list[str], successors: Mapping[str, Sequence[str]], order: Mapping[str, int]) -> list[str]:
    """A shortest path inside `knot` from its first node, by `order`, back to it."""
    members, first = set(knot), min(knot, key=order.__getitem__)
    came_from: dict[str, str] = {}
    level = [first]
    while level:
        following: list[str] = []
        for node in level:
            for successor in successors[node]:
                if successor == first:
                    path = [node]
                    while path[-1] != first:
                        path.append(came_from[path[-1]])
                    return path[::-1]
                if successor in members and successor not in came_from:
                    came_from[successor] = node
                    following.append(successor)
        level = following
    raise AssertionError("a knot has a cycle through each of its nodes")


def _knots(successors: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan's algorithm with its own stack)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    held: list[str] = []
    is_held: set[str] = set()
    knots: list[list[str]] = []
    for root in successors:
        if root in number:
            continue
        work = [(root, iter(successors[root]))]
        number[root] = low[root] = len(number)
        held.append(root)
        is_held.add(root)
        while work:
            node, rest = work[-1]
            for successor in rest:
                if successor not in number:
                    number[successor] = low[successor] = len(number)
                    held.append(successor)
                    is_held.add(successor)
                    work.append((successor, iter(successors[successor])))
                    break
                if successor in is_held:
                    low[node] = min(low[node], number[successor])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == number[node]:
                    at = _position(held, node)
                    knots.append(held[at:])
                    is_held.difference_update(held[at:])
                    del held[at:]
    return knots


def _position(held: list[str], node: str) -> int:
    at = len(held) - 1
    while held[at] != node:
        at -= 1
    return at
