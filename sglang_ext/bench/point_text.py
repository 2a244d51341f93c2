"""The ids that the points' prompts are made of."""

from __future__ import annotations

import random

# The first ids of a vocabulary are often special tokens, the last ones padding.
_LOWEST, _SHARE = 1000, 0.9


class PointText:
    """Random ids: parts that come again, which a prefix cache holds, and fresh ones, which none has seen.

    Args:
        vocabulary: the model's number of ids.
        seed: equal seeds give equal ids, in the same order.
    """

    def __init__(self, vocabulary: int, seed: int = 0) -> None:
        self._ids = range(min(_LOWEST, vocabulary // 2), int(vocabulary * _SHARE))
        self._random = random.Random(seed)
        self._kept: dict[str, list[int]] = {}

    def row(self, number: int, length: int) -> list[int]:
        """The prompt of a sequence that decodes; the same each time."""
        return self._part(f"row {number}", length)

    def prefix(self, length: int) -> list[int]:
        """What stands before a chunk; a longer one begins with a shorter one."""
        return self._part("prefix", length)

    def fresh(self, length: int) -> list[int]:
        return self._random.choices(self._ids, k=length)

    def _part(self, name: str, length: int) -> list[int]:
        own = self._kept.setdefault(name, [])
        own += self.fresh(max(0, length - len(own)))
        return own[:length]
