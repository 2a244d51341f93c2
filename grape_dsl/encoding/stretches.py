"""Stretches: the known parts of a prompt, collected from left to right and encoded in as few goes as possible."""

from __future__ import annotations

from collections.abc import Sequence

from grape_dsl.encoding.pieces import Hole, Segment
from grape_dsl.encoding.text_encoder import SpecialToken, TextEncoder


class Stretches:
    """Ids between holes. Text is kept until a special token, a hole or the end closes it, then encoded at once."""

    def __init__(self, encoder: TextEncoder):
        self._encoder = encoder
        self._rows: list[list[int]] = [[]]
        self._holes: list[Hole] = []
        self._text = ""
        self._at_start = True  # the pending text begins the prompt
        self._swallow = False  # the token before the pending text takes white space that follows it

    def add_template(self, text: str) -> None:
        """Add text of the template, with its special tokens."""
        for part in self._encoder.split_special(text):
            if isinstance(part, SpecialToken):
                self._add_special(part)
            else:
                self._add_text(part)

    def add_content(self, content: Sequence[str | Hole]) -> None:
        """Add text that brings no special tokens, and holes."""
        for piece in content:
            if isinstance(piece, Hole):
                self._add_hole(piece)
            else:
                self._add_text(piece)

    def add_ids(self, ids: Sequence[int]) -> None:
        """Add ids as they are."""
        self._flush()
        self._rows[-1] += ids
        if ids:
            self._at_start = False

    def close(self) -> None:
        """Encode what is pending. To be called once, at the end."""
        self._flush()

    def segments(self) -> list[Segment]:
        """The non-empty rows and the holes."""
        found: list[Segment] = []
        for index, row in enumerate(self._rows):
            if row:
                found.append(row)
            if index < len(self._holes):
                found.append(self._holes[index])
        return found

    def counts(self) -> list[int]:
        """The lengths of the rows around the holes, one more than there are holes."""
        return [len(row) for row in self._rows]

    def _add_text(self, text: str) -> None:
        if self._swallow:
            text = text.lstrip()
        if text:
            self._text += text
            self._swallow = False

    def _add_hole(self, hole: Hole) -> None:
        self._flush()
        self._holes.append(hole.widened(left=self._swallow))
        self._rows.append([])
        self._at_start = self._swallow = False

    def _add_special(self, token: SpecialToken) -> None:
        if token.strips_left:
            self._text = self._text.rstrip()
            if self._holes and not self._text and not self._rows[-1]:
                self._holes[-1] = self._holes[-1].widened(right=True)
        self.add_ids([token.id])
        self._swallow = token.strips_right

    def _flush(self) -> None:
        if self._text:
            self._rows[-1] += self._encoder.encode(self._text, at_start=self._at_start)
            self._text = ""
            self._at_start = False
