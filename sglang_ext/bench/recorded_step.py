"""A step of an engine as it was recorded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One step; times in seconds.

    Args:
        rows: requests that decoded in it.
        tokens: of prefill in it.
        kv: tokens of KV that it read.
        attention: sum over its pieces of tokens x (context + tokens / 2).
        waiting: requests that would have decoded and did not.
        pieces: of prompts in it.
    """

    start_s: float
    end_s: float
    rows: int
    tokens: int
    kv: int
    attention: float
    waiting: int = 0
    pieces: int = 0

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s
