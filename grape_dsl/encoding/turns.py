"""From a row of pieces to turns, or to raw text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grape_dsl.encoding.pieces import Hole, PromptPiece
from grape_dsl.graph.micro_task import Source, TurnEnd, TurnStart


@dataclass(slots=True)
class Turn:
    """A turn's role and content; `open` if the model continues it."""

    role: str
    content: list[str | Hole] = field(default_factory=list)
    open: bool = False


@dataclass(slots=True)
class RawText:
    content: list[str | Hole] = field(default_factory=list)


def read_turns(pieces: Sequence[PromptPiece]) -> list[Turn] | RawText:
    """The turns of `pieces`, at least one, or their raw text if there are none.

    Raises:
        ValueError: a piece lies outside the turns, or an open turn is not the last: no prompt is like that.
    """
    if not any(isinstance(piece, TurnStart | TurnEnd) for piece in pieces):
        return RawText([_content(piece) for piece in pieces if not isinstance(piece, TurnStart | TurnEnd)])
    turns: list[Turn] = []
    current: Turn | None = None
    for index, piece in enumerate(pieces):
        match piece, current:
            case TurnStart(), None:
                current = Turn(piece.role)
                turns.append(current)
            case TurnEnd(), Turn():
                if piece.open and index != len(pieces) - 1:
                    raise ValueError("only the last turn of a prompt can be open")
                current.open = piece.open
                current = None
            case str() | Hole() | Source(), Turn():
                current.content.append(_content(piece))
            case _:
                raise ValueError(f"piece {index} of the prompt, {piece!r}, is not where the turns allow it")
    if current is not None:
        raise ValueError("the last turn of the prompt has no end")
    return turns


def _content(piece: str | Hole | Source) -> str | Hole:
    return Hole.of(piece) if isinstance(piece, Source) else piece
