"""Outputs on their way to their readers: what of a task's output a reader's hole may take already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sglang_ext.tasks.output_ids import Matched


class OutputStream(Protocol):
    """Turns raw output ids into a reader's ids; `sglang_ext.tasks.streaming_output` has the one in use."""

    def push(self, ids: Sequence[int]) -> list[int]:
        """Take new raw ids; returns those that are settled for a reader."""

    def finish(self, final_ids: Sequence[int], matched: Matched) -> list[int]:
        """Take the whole finished output; returns the rest of a reader's ids."""


MakeStream = Callable[[bool, bool], OutputStream]
"""Makes a stream that strips white space at the left, at the right."""
Source = Callable[[int], Sequence[int]]
"""The raw ids that are known behind the first so many."""


@dataclass(slots=True)
class Feed:
    """What the readers that strip alike can take: `ids` so far, and whether that is all."""

    ids: list[int] = field(default_factory=list)
    ended: bool = False


class Output:
    """The output of one task, in each of the forms that its readers ask for.

    A reader may come before, while or after the task decodes.

    Args:
        source: asked when a reader takes from an output whose last ids were not pushed.
    """

    __slots__ = ("_feeds", "_make", "_matched", "_raw", "_source", "ended")

    def __init__(self, make: MakeStream, source: Source | None = None) -> None:
        self._make = make
        self._source = source
        self._raw: list[int] = []
        self._matched: Matched = None
        self._feeds: dict[tuple[bool, bool], tuple[OutputStream, Feed]] = {}
        self.ended = False

    @property
    def seen(self) -> int:
        """Raw ids taken so far."""
        return len(self._raw)

    def push(self, ids: Sequence[int]) -> None:
        """Take ids that the task has decoded since the last call."""
        self._raw.extend(ids)
        for stream, feed in self._feeds.values():
            feed.ids.extend(stream.push(ids))

    def finish(self, final_ids: Sequence[int], matched: Matched) -> None:
        """The task ended well with raw output `final_ids`."""
        self._raw = list(final_ids)
        self._matched = matched
        self.ended = True
        for stream, feed in self._feeds.values():
            self._close(stream, feed)

    def feed(self, left: bool, right: bool) -> Feed:
        """The feed for readers that strip at these sides, with all that is known by now."""
        if self._source is not None and not self.ended and (new := self._source(len(self._raw))):
            self.push(new)
        found = self._feeds.get((left, right))
        if found is None:
            stream, feed = self._make(left, right), Feed()
            self._feeds[left, right] = stream, feed
            if self.ended:
                self._close(stream, feed)
            else:
                feed.ids.extend(stream.push(self._raw))
            return feed
        return found[1]

    def _close(self, stream: OutputStream, feed: Feed) -> None:
        feed.ids.extend(stream.finish(self._raw, self._matched))
        feed.ended = True
