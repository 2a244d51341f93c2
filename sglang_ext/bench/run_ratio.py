"""Ratios between two arms, with intervals by drawing repetitions and runs again, never tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sglang_ext.bench.quantities import Ints
from sglang_ext.bench.run_figures import Figure, RunSet
from sglang_ext.bench.spread import Ratio

RESAMPLES = 500


def ratio(figure: Figure, arm: RunSet, baseline: RunSet, seed: int = 0) -> Ratio | None:
    """`figure` of `arm` over that of `baseline`, with its 95% interval; None where the baseline's is 0.

    The two have the same repetitions of the same runs; each draw takes the same ones of both, so that what they share
    cancels out.
    """
    sizes = [len(runs) for runs in arm.repetitions]
    if sizes != [len(runs) for runs in baseline.repetitions]:
        raise ValueError("two arms with different runs cannot be compared")
    below = figure(baseline, None)
    if not below:
        return None
    chance = np.random.default_rng(seed)
    drawn = []
    for _ in range(RESAMPLES):
        weights = draw(sizes, chance)
        under = figure(baseline, weights)
        if under:
            drawn.append(figure(arm, weights) / under)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Ratio(value=figure(arm, None) / below, low=float(low), high=float(high))


def draw(sizes: Sequence[int], chance: np.random.Generator) -> Ints:
    """How often each run counts when as many repetitions are drawn as there are, and of each as many runs as it has."""
    starts = np.cumsum([0, *sizes[:-1]])
    weights = np.zeros(sum(sizes), dtype=np.int64)
    for repetition in chance.integers(len(sizes), size=len(sizes)):
        size = sizes[repetition]
        picked = chance.integers(size, size=size) + starts[repetition]
        np.add.at(weights, picked, 1)
    return weights
