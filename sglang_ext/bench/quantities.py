"""Values of many runs, each value knowing its run, so that runs can be drawn again with all that belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Values:
    """Args: sorted: all values, ascending. owner: the number of each one's run. runs: how many runs there are."""

    sorted: Floats
    owner: Ints
    runs: int

    @classmethod
    def of(cls, by_run: Sequence[Sequence[float]]) -> Values:
        values = np.array([value for own in by_run for value in own], dtype=np.float64)
        owner = np.repeat(np.arange(len(by_run), dtype=np.int64), [len(own) for own in by_run])
        order = np.argsort(values, kind="stable")
        return cls(values[order], owner[order], len(by_run))

    def __bool__(self) -> bool:
        return bool(len(self.sorted))

    def mean(self, weights: Ints | None = None) -> float:
        """Args: weights: how often each run counts, by its number; None: once each."""
        if weights is None:
            return float(self.sorted.mean())
        own = weights[self.owner]
        return float((self.sorted * own).sum() / own.sum())

    def percentile(self, share: float, weights: Ints | None = None) -> float:
        """The smallest value that at least `share` (0 to 1) of the values do not exceed."""
        if weights is None:
            place = int(np.ceil(share * len(self.sorted))) - 1
            return float(self.sorted[max(place, 0)])
        upto = np.cumsum(weights[self.owner])
        if not upto[-1]:
            raise ValueError("no run that counts has a value")
        place = int(np.searchsorted(upto, share * upto[-1] - 1e-9))
        return float(self.sorted[min(place, len(self.sorted) - 1)])

    @property
    def most(self) -> float:
        return float(self.sorted[-1])
