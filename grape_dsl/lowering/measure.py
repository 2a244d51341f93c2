"""Pass 2: the sizes of known text, in characters or, with a counter, in tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from grape_dsl.graph.micro_task import InputPart, MicroTask, MicroTaskKind, Source, TurnEnd, TurnStart
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.lowering.token_counter import TokenCounter


def measure(graph: MicroTaskGraph, counter: TokenCounter | None) -> None:
    """Set the size of every static and suffix prefill, and the graph's unit."""
    graph.unit = "characters" if counter is None else "tokens"
    for task in [node.task for node in graph.nodes() if node.kind is MicroTaskKind.DECODE]:
        chain = graph.chain(task)[:-1]
        sizes = _characters(chain) if counter is None else _tokens(chain, counter)
        for node, size in zip(chain, sizes, strict=True):
            graph.add(replace(node, size=size))


def _characters(chain: list[MicroTask]) -> list[int | None]:
    return [sum(len(p) for p in n.parts if isinstance(p, str)) if n.source is None else None for n in chain]


def _tokens(chain: list[MicroTask], counter: TokenCounter) -> list[int | None]:
    from grape_dsl.encoding import Hole  # only here: it needs the package `tokenizers`, as counters do

    pieces = [Hole.of(p) if isinstance(p, Source) else p for p in _without_inputs(chain)]
    counts = counter.known_tokens(pieces)
    holes = sum(node.source is not None for node in chain)
    if len(counts) != holes + 1:
        raise ValueError(f"a token counter returned {len(counts)} counts for a prompt with {holes} holes")
    sizes: list[int | None] = []
    stretch = 0
    for node in chain:
        if node.source is None:
            sizes.append(counts[stretch])
        else:
            sizes.append(None)
            stretch += 1
    return sizes


def _without_inputs(chain: list[MicroTask]) -> Iterator[str | TurnStart | TurnEnd | Source]:
    for node in chain:
        for piece in node.pieces:
            if not isinstance(piece, InputPart):
                yield piece
