"""Pieces of a prompt in short, for the forms that people read."""

from __future__ import annotations

from collections.abc import Iterable

from grape_dsl.graph.micro_task import InputPart, Piece, Source, TurnEnd, TurnStart
from grape_dsl.graph.micro_task_graph import MicroTaskGraph


def reference(name: str, strip: bool) -> str:
    """A reference as a template writes it."""
    return f"{{{{strip({name})}}}}" if strip else f"{{{{{name}}}}}"


def source_text(graph: MicroTaskGraph, source: Source) -> str:
    """The reference that a hole stands for, by the variable that its task writes."""
    return reference(graph[f"{source.task}/decode"].output or source.task, source.strip)


def excerpt(pieces: Iterable[Piece], width: int) -> str:
    """Known pieces on one line of at most `width` characters, long texts by their ends.

    Such as `[user] "Write one short...uestion: " {{question}} [end]`; `[open]` is an end that the model continues.
    """
    shown: list[str] = []
    for piece in pieces:
        if isinstance(piece, TurnStart):
            shown.append(f"[{piece.role}]")
        elif isinstance(piece, TurnEnd):
            shown.append("[open]" if piece.open else "[end]")
        elif isinstance(piece, InputPart):
            shown.append(reference(piece.name, piece.strip))
        elif isinstance(piece, str):
            shown.append(f'"{short(piece)}"')
    line = " ".join(shown)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."


def short(text: str, width: int = 32, tail: int = 12) -> str:
    """`text` on one line; if it is longer than `width`, its beginning and its last `tail` characters."""
    if len(text) > width:
        text = text[: width - tail - 3] + "..." + text[len(text) - tail :]
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
