"""One task: its state, and its prompt as far as it is known."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from sglang_ext.tasks.hint import Known, OutputHole, TaskHint, request_id
from sglang_ext.tasks.outputs import Feed
from sglang_ext.tasks.state import ENDS, TaskState, step

FindFeed = Callable[[OutputHole], Feed | None]


@dataclass(slots=True, eq=False)
class Task:
    """A task of a run.

    Args:
        rid: its request's id.
        order: arrivals are numbered from 0 in one engine; the youngest has the highest.
        prompt: ids from the front without a gap, as far as they are known; only ever appended to.
        complete: no hole is open any more.
    """

    hint: TaskHint
    order: int
    state: TaskState = TaskState.HELD
    prompt: array[int] = field(default_factory=lambda: array("q"))
    complete: bool = False
    _segment: int = 0
    _taken: int = 0
    _waiting: int = 0
    # Length that the feed of the open hole has when the prompt can grow again; the feed is None before it came.
    _feed: Feed | None = None
    _wakes_at: int = 0
    _streamed: list[tuple[int, int]] = field(default_factory=list)
    _known_ahead: int = field(init=False)
    rid: str = field(init=False)

    def __post_init__(self) -> None:
        self._known_ahead = self.hint.known_tokens
        self.rid = request_id(self.hint.run, self.hint.index)

    @property
    def alive(self) -> bool:
        return self.state not in ENDS

    @property
    def known_prefix(self) -> int:
        """Tokens before the first hole."""
        first = self.hint.segments[0] if self.hint.segments else None
        return len(first.ids) if isinstance(first, Known) else 0

    @property
    def known_ahead(self) -> int:
        """Tokens of fixed text behind the first open hole."""
        return self._known_ahead

    @property
    def certain_length(self) -> int:
        """The prompt's length if its open outputs had ended when it last grew: it can only grow from here."""
        return len(self.prompt) + self._waiting + self._known_ahead

    @property
    def open_hole(self) -> OutputHole | None:
        """The hole that the prompt stops at; None if the prompt is complete."""
        if self.complete or self._segment >= len(self.hint.segments):
            return None
        segment = self.hint.segments[self._segment]
        return segment if isinstance(segment, OutputHole) else None

    def move(self, target: TaskState) -> None:
        """Go to state `target`; raises IllegalTransition where no way leads there."""
        self.state = step(self.state, target)

    def stirs(self, upstream: str) -> bool:
        """Whether the prompt can grow with what task `upstream` has produced by now."""
        hole = self.open_hole
        if hole is None or hole.task != upstream:
            return False
        feed = self._feed
        return feed is None or feed.ended or len(feed.ids) >= self._wakes_at

    def stirs_from(self, upstream: str) -> float:
        """The least length of the output of task `upstream` with which the prompt can grow; infinite if with none."""
        hole = self.open_hole
        if hole is None or hole.task != upstream:
            return math.inf
        # Stripping at the left may turn one id into several.
        return 0 if self._feed is None or hole.sides[0] else self._wakes_at

    def wake_after(self, tokens: int) -> None:
        """Let the prompt stir once so many more ids have come, though they make no chunk."""
        self._wakes_at = min(self._wakes_at, self._taken + self._waiting + tokens)

    def grow(self, find: FindFeed) -> int:
        """Append what has become known: whole chunks of an open output, the rest of an ended one.

        Args:
            find: the feed of a hole, None while its task has not arrived.

        Returns:
            How many ids were appended.
        """
        before = len(self.prompt)
        while self._segment < len(self.hint.segments):
            segment = self.hint.segments[self._segment]
            if isinstance(segment, Known):
                self.prompt.extend(segment.ids)
                self._known_ahead -= len(segment.ids)
            elif not self._take(segment, find(segment)):
                break
            self._segment += 1
            self._taken = 0
            self._feed = None
        self.complete = self._segment == len(self.hint.segments)
        return len(self.prompt) - before

    def streamed_within(self, start: int, end: int) -> int:
        """How many of the prompt's ids in [start, end) came through a hole."""
        return sum(max(0, min(end, b) - max(start, a)) for a, b in self._streamed)

    def _take(self, hole: OutputHole, feed: Feed | None) -> bool:
        """Append ids of the open hole; returns whether the hole is closed."""
        self._feed = feed
        if feed is None:
            return False
        available = len(feed.ids) - self._taken
        count = available if feed.ended else available // hole.weight * hole.weight
        self._waiting = available - count
        if count:
            start = len(self.prompt)
            self.prompt.extend(feed.ids[self._taken : self._taken + count])
            self._streamed.append((start, start + count))
            self._taken += count
        self._wakes_at = self._taken + hole.weight
        return feed.ended
