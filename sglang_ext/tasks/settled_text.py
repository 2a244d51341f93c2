"""SettledText: the text of a growing row of ids, as far as no id that follows can change it."""

from __future__ import annotations

from typing import NamedTuple

from sglang_ext.tasks.output_ids import INCOMPLETE, TextCodec


class Border(NamedTuple):
    """A border between two ids that is one between two characters: ids and characters before it."""

    ids: int
    position: int


class SettledText:
    """Ids that come one by one, their settled text, and the borders in it.

    All counts are from the last border that was taken. Each id costs two decodes of the few ids whose
    text is open, with some settled ones before them for tokenizers that treat a row's start differently.
    """

    def __init__(self, codec: TextCodec):
        self._codec = codec
        self._ids: list[int] = []
        self._settled = 0  # ids that make up `text`
        self._open: list[tuple[int, str]] = []  # behind the settled text: ids before, and the text up to there
        self._context: list[int] = []
        self._context_length = 0
        self._borders = [Border(0, 0)]
        self.text = ""

    def push(self, token: int) -> None:
        """Take the next id."""
        self._ids.append(token)
        window = self._codec.decode(self._context + self._ids[self._settled :])[self._context_length :]
        self._open.append((len(self._ids), window))
        # Text that ends in U+FFFD may be an unfinished character, of which as many as three can show.
        certain = len(window) - (INCOMPLETE if window.endswith("\ufffd") else 0)
        borders = [(ids, text) for ids, text in self._open if 0 < len(text) <= certain and window.startswith(text)]
        if borders:
            self._settle(borders)

    def _settle(self, borders: list[tuple[int, str]]) -> None:
        self._borders += [Border(ids, len(self.text) + len(text)) for ids, text in borders]
        last, text = borders[-1]
        self.text += text
        self._context, self._settled = self._ids[self._settled : last], last
        self._context_length = len(self._codec.decode(self._context))
        self._open = [(ids, more[len(text) :]) for ids, more in self._open if ids > last]

    def first_from(self, position: int) -> Border | None:
        """The first border at or behind `position`, if it is settled."""
        return next((border for border in self._borders if border.position >= position), None)

    def last_until(self, position: int) -> Border:
        """The last settled border at or before `position`."""
        return next(border for border in reversed(self._borders) if border.position <= position)

    def take(self, border: Border) -> list[int]:
        """Remove and return the ids before `border`."""
        taken, self._ids = self._ids[: border.ids], self._ids[border.ids :]
        self.text = self.text[border.position :]
        self._settled -= border.ids
        self._borders = [
            Border(b.ids - border.ids, b.position - border.position) for b in self._borders if b.ids >= border.ids
        ]
        self._open = [(ids - border.ids, text) for ids, text in self._open]
        return taken
