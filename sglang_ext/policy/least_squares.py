"""Non-negative least squares in plain Python, for a handful of unknowns.

Lawson and Hanson's active set on the normal equations, with columns scaled to the same size. The policy has no
numpy: it must run wherever the compiler runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

ENOUGH = 1e-10
"""A gradient below this part of the largest one counts as none."""


class NormalEquations:
    """The sums A^T A and A^T b of rows that come one by one.

    Args:
        size: the number of unknowns.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.square = [[0.0] * size for _ in range(size)]
        self.right = [0.0] * size

    def add(self, row: Sequence[float], value: float, weight: float = 1.0) -> None:
        """One more equation row . x = value."""
        used = [(i, each) for i, each in enumerate(row) if each]
        for i, left in used:
            part = weight * left
            line = self.square[i]
            for j, other in used:
                line[j] += part * other
            self.right[i] += part * value

    def fade(self, factor: float) -> None:
        """Let all rows so far count that much less."""
        self.square = [[factor * each for each in line] for line in self.square]
        self.right = [factor * each for each in self.right]

    def solve(self) -> list[float]:
        """The x >= 0 with the least squared error; an unknown that no row has is 0."""
        scales = [line[i] ** 0.5 if line[i] > 0 else 0.0 for i, line in enumerate(self.square)]
        used = [i for i in range(self.size) if scales[i]]
        square = [[self.square[i][j] / (scales[i] * scales[j]) for j in used] for i in used]
        right = [self.right[i] / scales[i] for i in used]
        found = _active_set(square, right)
        result = [0.0] * self.size
        for value, i in zip(found, used, strict=True):
            result[i] = value / scales[i]
        return result


def solve(rows: Iterable[tuple[Sequence[float], float, float]], size: int) -> list[float]:
    """The x >= 0 with the least squared error over rows of (coefficients, value, weight)."""
    equations = NormalEquations(size)
    for row, value, weight in rows:
        equations.add(row, value, weight)
    return equations.solve()


def _active_set(square: list[list[float]], right: list[float]) -> list[float]:
    size = len(right)
    x = [0.0] * size
    free: list[int] = []
    least = ENOUGH * max((abs(each) for each in right), default=0.0)
    # Each round frees one unknown; more rounds than this mean that rounding errors go in a circle.
    for _ in range(3 * size):
        slope = {i: right[i] - sum(square[i][j] * x[j] for j in free) for i in range(size) if i not in free}
        best = max(slope, key=lambda i: slope[i], default=None)
        if best is None or slope[best] <= least:
            break
        free.append(best)
        while free:
            trial = _gauss([[square[i][j] for j in free] for i in free], [right[i] for i in free])
            if min(trial) > 0:
                x = [0.0] * size
                for i, value in zip(free, trial, strict=True):
                    x[i] = value
                break
            # Go from x towards the trial until the first unknown gets to 0, and bind that one again.
            # One that stands at 0 and stays there leaves at once.
            steps = {
                i: x[i] / (x[i] - value) if x[i] > value else 0.0
                for i, value in zip(free, trial, strict=True)
                if value <= 0
            }
            step = min(steps.values())
            for i, value in zip(free, trial, strict=True):
                x[i] += step * (value - x[i])
            free = [i for i in free if not (i in steps and steps[i] <= step)]
            x = [value if i in free else 0.0 for i, value in enumerate(x)]
    return x


def _gauss(square: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a symmetric system; an unknown that others already explain is 0."""
    size = len(right)
    lines = [[*line, value] for line, value in zip(square, right, strict=True)]
    for i in range(size):
        if lines[i][i] <= 1e-12:
            lines[i] = [0.0] * (size + 1)
            lines[i][i] = 1.0
        for below in range(i + 1, size):
            factor = lines[below][i] / lines[i][i]
            if factor:
                lines[below] = [a - factor * b for a, b in zip(lines[below], lines[i], strict=True)]
    x = [0.0] * size
    for i in reversed(range(size)):
        x[i] = (lines[i][size] - sum(lines[i][j] * x[j] for j in range(i + 1, size))) / lines[i][i]
    return x
