"""Which ids of a finished output its readers get: the rule for values that begin or end inside a token.

A value is a stretch of an output's text. Tokens wholly inside it pass as ids; what is left of a token
that the value's border cuts is encoded as text. A border inside a character's bytes is none: tokens
that share a character stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Matched = int | str | None
"""What ended an output: a token id (EOS or a stop token), a stop string, or neither."""

INCOMPLETE = 3
"""An unfinished character can show as so many U+FFFD."""


class TextCodec(Protocol):
    """A tokenizer as far as borders need it; `grape_dsl.encoding.TextEncoder` is one."""

    def encode(self, text: str) -> list[int]:
        """The ids of `text` in the middle of a prompt, never special ones."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens by name, broken UTF-8 as U+FFFD."""
        ...


def reader_ids(output_ids: Sequence[int], matched: Matched, codec: TextCodec) -> list[int]:
    """The output without what closed it.

    Args:
        output_ids: through the closing token, or through the one that completes the stop string.
        matched: what closed it.
    """
    ids = list(output_ids)
    if isinstance(matched, int):
        return ids[:-1] if ids and ids[-1] == matched else ids
    if matched is None:
        return ids
    text = codec.decode(ids)
    end = text.find(matched)
    return ids if end < 0 else _value(ids, text, 0, end, codec)


def strip_ids(ids: Sequence[int], left: bool, right: bool, codec: TextCodec) -> list[int]:
    """`ids` without white space at the given sides of their text."""
    if not left and not right:
        return list(ids)
    text = codec.decode(ids)
    end = len(text.rstrip()) if right else len(text)
    start = len(text) - len(text.lstrip()) if left else 0
    return _value(list(ids), text, start, end, codec)


def _value(ids: list[int], text: str, start: int, end: int, codec: TextCodec) -> list[int]:
    """The ids of text[start:end]; `text` is what `ids` decode to. An empty value has none."""
    if end <= start:
        return []
    prefixes = _Prefixes(ids, text, codec)
    first = prefixes.first_from(start) if start else (0, 0)
    last = prefixes.last_until(end) if end < len(text) else (len(ids), len(text))
    if first[1] > last[1]:
        return codec.encode(text[start:end])
    return codec.encode(text[start : first[1]]) + ids[first[0] : last[0]] + codec.encode(text[last[1] : end])


class _Prefixes:
    """The borders between tokens that are borders between characters: k ids whose text is a prefix of the whole."""

    def __init__(self, ids: list[int], text: str, codec: TextCodec):
        self._ids, self._text, self._codec = ids, text, codec

    def first_from(self, position: int) -> tuple[int, int]:
        """The first border at or behind `position`: ids before it, characters before it."""
        k = max(self._beyond(position - INCOMPLETE - 1) - 1, 0)
        while True:
            length = self._length_if_border(k)
            if length is not None and length >= position:
                return k, length
            k += 1

    def last_until(self, position: int) -> tuple[int, int]:
        """The last border at or before `position`."""
        k = self._beyond(position + INCOMPLETE)
        while True:
            length = self._length_if_border(k)
            if length is not None and length <= position:
                return k, length
            k -= 1

    def _length_if_border(self, k: int) -> int | None:
        prefix = self._codec.decode(self._ids[:k])
        return len(prefix) if self._text.startswith(prefix) else None

    def _beyond(self, position: int) -> int:
        """A k whose text is longer than `position` while that of k - 1 is not; all ids if none is longer.

        Lengths grow with k but for unfinished characters, so bisection is right to within `INCOMPLETE`.
        """
        low, high = 0, len(self._ids)
        while low < high:
            middle = (low + high) // 2
            if len(self._codec.decode(self._ids[:middle])) > position:
                high = middle
            else:
                low = middle + 1
        return high
