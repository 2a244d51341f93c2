"""Ratios between two arms, with intervals by drawing repetitions and runs again, never tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from sglang_ext.bench.quantities import Floats, Values
from sglang_ext.bench.run_figures import RunSet
from sglang_ext.bench.spread import Ratio

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of an arm, in seconds.

    Args:
        of: the values of a `RunSet` that it is about.
        share: of the percentile, 0 to 1; None for the mean.
    """

    of: Literal["line", "chain", "switch", "worst", "ttft", "final_ttft", "completion"]
    share: float | None = None

    def values(self, runs: RunSet) -> Values:
        """All values that it is about; none where the runs have none."""
        values: Values = getattr(runs, self.of)
        return values

    def value(self, runs: RunSet) -> float:
        values = self.values(runs)
        return values.mean() if self.share is None else values.percentile(self.share)

    def drawn(self, runs: RunSet, weights: Floats) -> Floats:
        """Its value for each draw of the runs."""
        values = self.values(runs)
        return values.drawn_means(weights) if self.share is None else values.drawn_percentiles(self.share, weights)


def ratio(figure: Figure, arm: RunSet, baseline: RunSet) -> Ratio | None:
    """`figure` of `arm` over that of `baseline`, with its 95% interval; None where the baseline's is 0.

    The two have the same repetitions of the same runs; each draw takes the same ones of both, so that what they share
    cancels out. Equal arguments give equal intervals.
    """
    sizes = tuple(len(runs) for runs in arm.repetitions)
    if sizes != tuple(len(runs) for runs in baseline.repetitions):
        raise ValueError("two arms with different runs cannot be compared")
    below = figure.value(baseline)
    if not below:
        return None
    weights = draws(sizes)
    under = figure.drawn(baseline, weights)
    usable = under > 0
    drawn = figure.drawn(arm, weights)[usable] / under[usable]
    low, high = np.percentile(drawn[~np.isnan(drawn)], [2.5, 97.5])
    return Ratio(value=figure.value(arm) / below, low=float(low), high=float(high))


@lru_cache(maxsize=4)
def draws(sizes: Sequence[int], number: int = RESAMPLES, seed: int = 0) -> Floats:
    """How often each run counts in each draw (draws x runs).

    A draw takes as many repetitions as there are, and of each as many runs as it has, both with replacement.

    Args:
        sizes: runs of each repetition.
    """
    chance = np.random.default_rng(seed)
    starts = np.cumsum([0, *sizes[:-1]])
    weights = np.zeros((number, sum(sizes)))
    for draw in weights:
        for repetition in chance.integers(len(sizes), size=len(sizes)):
            size = sizes[repetition]
            np.add.at(draw, chance.integers(size, size=size) + starts[repetition], 1)
    return weights
