"""Who shows how far a benchmark is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def starting(self, engine: str) -> None:
        """Called again and again while an engine starts."""

    def measuring(self, turns: int) -> None:
        """All engines run; so many measurements follow."""

    def measured(self, what: str) -> None:
        """One is done."""
