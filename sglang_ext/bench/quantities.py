"""Values of many runs, each value knowing its run, so that runs can be drawn again with all that belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Neighbouring values are counted together, so that percentiles of drawn runs are right to one part in so many.
BINS = 4000


class Values:
    """Args: by_run: the values of each run; some may have none."""

    def __init__(self, by_run: Sequence[Sequence[float]]) -> None:
        values = np.array([value for own in by_run for value in own], dtype=np.float64)
        owner = np.repeat(np.arange(len(by_run), dtype=np.int64), [len(own) for own in by_run])
        order = np.argsort(values, kind="stable")
        self.runs = len(by_run)
        self.sorted: Floats = values[order]
        self._owner: Ints = owner[order]

    def __bool__(self) -> bool:
        return bool(len(self.sorted))

    def mean(self) -> float:
        return float(self.sorted.mean())

    def percentile(self, share: float) -> float:
        """The smallest value that at least `share` (0 to 1) of the values do not exceed."""
        place = int(np.ceil(share * len(self.sorted) - 1e-9)) - 1
        return float(self.sorted[max(place, 0)])

    @property
    def most(self) -> float:
        return float(self.sorted[-1])

    def drawn_means(self, weights: Floats) -> Floats:
        """The mean for each draw. Args: weights: draws x runs, how often each run counts; NaN where nothing counts."""
        sums = weights @ np.bincount(self._owner, self.sorted, self.runs)
        sizes = weights @ np.bincount(self._owner, minlength=self.runs)
        with np.errstate(invalid="ignore", divide="ignore"):
            means: Floats = sums / sizes
        return means

    def drawn_percentiles(self, share: float, weights: Floats) -> Floats:
        """As `percentile`, for each draw."""
        edges, counts = self._binned
        upto = np.cumsum(weights @ counts, axis=1)
        places = (upto < share * upto[:, -1:] - 1e-6).sum(axis=1)
        found: Floats = np.where(upto[:, -1] > 0, edges[np.minimum(places, len(edges) - 1)], np.nan)
        return found

    @cached_property
    def _binned(self) -> tuple[Floats, Floats]:
        """The largest value of each bin, and how many values of each run (row) are in each bin (column)."""
        edges = np.unique(self.sorted)
        if len(edges) > BINS:
            ranks = np.linspace(0, len(self.sorted) - 1, BINS).round().astype(np.int64)
            edges = np.unique(self.sorted[ranks])
        counts = np.zeros((self.runs, len(edges)))
        np.add.at(counts, (self._owner, np.searchsorted(edges, self.sorted)), 1)
        return edges, counts
