"""Things of requests in the order of their arrival, for those who read them all more often than they change."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Generic, TypeVar

T = TypeVar("T")


class ByArrival(Generic[T]):
    """One thing for each of some requests, oldest first. A change costs what it changes, but for moving pointers."""

    def __init__(self) -> None:
        self._found: dict[int, T] = {}
        self._order: list[int] = []
        self._all: tuple[T, ...] | None = ()

    def put(self, arrival: int, thing: T) -> None:
        """Have this for the request with that number of arrival, in place of what it had."""
        if arrival not in self._found:
            insort(self._order, arrival)
        self._found[arrival] = thing
        self._all = None

    def drop(self, arrival: int) -> None:
        """Have nothing for that request any more."""
        if arrival in self._found:
            del self._found[arrival]
            del self._order[bisect_left(self._order, arrival)]
            self._all = None

    def __contains__(self, arrival: int) -> bool:
        return arrival in self._found

    def all(self) -> tuple[T, ...]:
        """All of them, oldest first."""
        if self._all is None:
            self._all = tuple(map(self._found.__getitem__, self._order))
        return self._all
