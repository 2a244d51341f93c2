"""Micro-tasks: the nodes and edges of a lowered workflow, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MicroTaskKind(StrEnum):
    """What a node computes, and thereby when it may start (docs/graph.md has the table)."""

    STATIC_PREFILL = "static_prefill"
    DYNAMIC_PREFILL = "dynamic_prefill"
    SUFFIX_PREFILL = "suffix_prefill"
    DECODE = "decode"


class EdgeKind(StrEnum):
    """`strong`: order inside a task; `partial`: streamed from a decode; `full`: arrives in one piece."""

    STRONG = "strong"
    PARTIAL = "partial"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class InputPart:
    """The value of an InputVar inside a prompt; its length is not known before a run."""

    name: str
    strip: bool = False


@dataclass(frozen=True, slots=True)
class TurnStart:
    """A turn of the chat template begins here; what the template writes belongs to the known text."""

    role: str


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The turn ends here. `open` marks a final assistant turn that the model continues."""

    open: bool = False


KnownPart = str | InputPart | TurnStart | TurnEnd


@dataclass(frozen=True, slots=True)
class Source:
    """What a dynamic prefill waits for: the output of task `task`, stripped or as it is."""

    task: str
    strip: bool = False


Piece = KnownPart | Source


@dataclass(frozen=True, slots=True)
class MicroTask:
    """One node.

    Args:
        id: `TASK/decode` or `TASK/INDEX`, the index counting a task's prefill nodes from 0.
        parts: what a static or suffix prefill computes, in prompt order; empty for other kinds.
        source: what a dynamic prefill computes; None for other kinds.
        size: length of the text in `parts` without inputs, in the graph's unit (characters or
            tokens); for a decode its `max_tokens`; None where it is not known before a run.
        output: the variable that a decode writes; None for other kinds.
    """

    id: str
    task: str
    kind: MicroTaskKind
    parts: tuple[KnownPart, ...] = ()
    source: Source | None = None
    size: int | None = None
    output: str | None = None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The stretch of the prompt that this node computes; empty for a decode."""
        return self.parts if self.source is None else (*self.parts, self.source)


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge. `weight`, tokens per streamed chunk, is set on partial edges only and at least 1."""

    kind: EdgeKind
    weight: int | None = None
