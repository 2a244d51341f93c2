"""TokenCounter: how the compiler learns token counts without knowing a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from grape_dsl.encoding import PromptPiece


class TokenCounter(Protocol):
    """Counts the tokens of a prompt's known text."""

    def known_tokens(self, pieces: Sequence[PromptPiece]) -> list[int]:
        """Token counts of the known stretches of one prompt.

        Args:
            pieces: the prompt in order, values of inputs left out. A `Hole` is what an upstream task fills.

        Returns:
            One count for the stretch before the first hole, between each two holes and behind the
            last, so one more than there are holes; 0 for an empty stretch.
        """
        ...
