"""How long outputs are expected to be: running means by the name of the task."""

from __future__ import annotations

from collections import OrderedDict

FIRST = 64.0
"""The length expected before any output has ended."""
FLOOR = 0.15
"""The least rest of an output that has outgrown its mean, as a part of the mean."""
MEMORY = 50
"""Outputs that a mean goes back over, roughly."""
NAMES = 4096
"""Names that are kept; the one seen longest ago is forgotten first."""


class OutputLengths:
    """Running means of the lengths of outputs, fed by the engine or the simulator when an output ends.

    A name is any text that tells tasks apart: that of a task, with its workflow's where names repeat.
    """

    def __init__(self) -> None:
        self._means: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._all = (FIRST, 0)

    def learn(self, task: str, tokens: int) -> None:
        """An output of this many tokens has ended."""
        self._means[task] = _next(self._means.get(task, (0.0, 0)), tokens)
        self._means.move_to_end(task)
        if len(self._means) > NAMES:
            self._means.popitem(last=False)
        self._all = _next(self._all, tokens)

    def mean(self, task: str, most: int | None = None) -> float:
        """The expected length of an output, at most `most`; before the first one of its task that of all tasks."""
        mean = self._means.get(task, self._all)[0]
        return mean if most is None else min(mean, float(most))

    def rest(self, task: str, written: int, most: int | None = None) -> float:
        """The tokens that are expected after the first `written` ones: decode steps until the output ends."""
        mean = self.mean(task, most)
        rest = max(mean - written, FLOOR * mean)
        return rest if most is None else max(0.0, min(rest, float(most - written)))


def _next(old: tuple[float, int], tokens: int) -> tuple[float, int]:
    mean, seen = old
    seen += 1
    return mean + (tokens - mean) / min(seen, MEMORY), seen
