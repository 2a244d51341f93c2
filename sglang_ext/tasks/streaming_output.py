"""StreamingOutput: a reader's ids while the output is still being decoded."""

from __future__ import annotations

from collections.abc import Sequence

from sglang_ext.tasks.output_ids import Matched, TextCodec, reader_ids, strip_ids
from sglang_ext.tasks.settled_text import SettledText


class StreamingOutput:
    """Hands out a reader's ids as soon as nothing that may follow can change them.

    Held back are tokens that may be part of a stop string, that end inside a character, or that are
    white space which `strip` takes if the value ends there. All that `push` and `finish` return, joined,
    is `strip_ids(reader_ids(final_ids, matched), left, right)`. An id costs a few decodes of a few ids.

    Args:
        stops: the output's stop strings.
        left, right: the sides that the reader strips.
    """

    def __init__(self, codec: TextCodec, stops: Sequence[str] = (), left: bool = False, right: bool = False):
        self._codec = codec
        self._stops = [stop for stop in stops if stop]
        self._left, self._right = left, right
        self._started = not left
        self._sent: list[int] = []
        self._text = SettledText(codec)

    def push(self, ids: Sequence[int]) -> list[int]:
        """Take the next ids of the output, the one that closes it left out; returns what is settled by them."""
        if not self._stops and not self._left and not self._right:
            settled = list(ids)  # no border can fall on them
        else:
            for i in ids:
                self._text.push(i)
            settled = self._release()
        self._sent += settled
        return settled

    def finish(self, final_ids: Sequence[int], matched: Matched) -> list[int]:
        """Take the whole finished output, with what closed it; returns the rest of the reader's ids.

        Raises:
            ValueError: `final_ids` does not begin with what was pushed.
        """
        whole = strip_ids(reader_ids(final_ids, matched, self._codec), self._left, self._right, self._codec)
        sent = len(self._sent)
        if whole[:sent] != self._sent:
            raise ValueError("the finished output does not continue what was streamed of it")
        return whole[sent:]

    def _release(self) -> list[int]:
        """Take out the settled ids before the earliest place where the value can still end."""
        end = self._earliest_end(self._text.text)
        if not end:
            return []
        if self._started:
            return self._text.take(self._text.last_until(end))
        text = self._text.text[:end]
        start = len(text) - len(text.lstrip())
        border = self._text.first_from(start) if start < end else None
        if border is None or border.position > end:
            return []
        self._started = True
        last = self._text.last_until(end)
        return self._codec.encode(text[start : border.position]) + self._text.take(last)[border.ids :]

    def _earliest_end(self, text: str) -> int:
        """The least length that the value can have if the output begins with `text`."""
        end = min((_first_place(text, stop) for stop in self._stops), default=len(text))
        return len(text[:end].rstrip()) if self._right else end


def _first_place(text: str, stop: str) -> int:
    """Where `stop` begins in `text`, wholly or cut off by its end; the text's length if it does not."""
    whole = text.find(stop)
    if whole >= 0:
        return whole
    cut_off = (i for i in range(max(0, len(text) - len(stop) + 1), len(text)) if stop.startswith(text[i:]))
    return next(cut_off, len(text))
