"""How long the outputs of a workload's tasks are."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Length:
    """A task's output in tokens: `typical` times a factor from 1 / `spread` to `spread`, evenly in its logarithm."""

    typical: int
    spread: float = 1.6

    def draw(self, chance: random.Random) -> int:
        factor: float = self.spread ** chance.uniform(-1.0, 1.0)
        return max(1, round(self.typical * factor))


def draw_all(lengths: Mapping[str, Length], tasks: list[str], chance: random.Random, scale: float) -> dict[str, int]:
    """A length for each of `tasks`, `scale` times what is typical; equal seeds give equal lengths."""
    return {task: max(1, round(scale * lengths[task].draw(chance))) for task in tasks}
