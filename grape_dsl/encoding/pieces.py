"""What a prompt is made of when it comes to be encoded, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grape_dsl.graph.micro_task import Source, TurnEnd, TurnStart


@dataclass(frozen=True, slots=True)
class Hole:
    """A place for the output of task `task`, without white space at the sides that are stripped."""

    task: str
    strip_left: bool = False
    strip_right: bool = False

    @classmethod
    def of(cls, source: Source) -> Hole:
        return cls(source.task, source.strip, source.strip)

    def widened(self, *, left: bool = False, right: bool = False) -> Hole:
        """This hole, stripped at the given sides too."""
        return replace(self, strip_left=self.strip_left or left, strip_right=self.strip_right or right)


PromptPiece = str | TurnStart | TurnEnd | Hole | Source
"""Text, the borders of turns, and holes. Without any turn the prompt is raw text."""

Segment = list[int] | Hole
"""Token ids, or a hole between them. Ids are never empty; a prompt without any tokens has no segments."""
