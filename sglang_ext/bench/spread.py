"""Medians with their spread, and ratios of paired samples."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median, quantiles

from pydantic import BaseModel, ConfigDict

_RESAMPLES = 2000
_SEED = 0


class Spread(BaseModel):
    """The median of some samples and the quartiles around it."""

    model_config = ConfigDict(frozen=True)

    median: float
    q1: float
    q3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if len(values) == 1:
            return cls(median=values[0], q1=values[0], q3=values[0])
        q1, middle, q3 = quantiles(values, n=4, method="inclusive")
        return cls(median=middle, q1=q1, q3=q3)

    @property
    def iqr(self) -> float:
        """The width of the middle half."""
        return self.q3 - self.q1


class Ratio(BaseModel):
    """The ratio of two medians, with its 95% interval by bootstrap over the pairs."""

    model_config = ConfigDict(frozen=True)

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], baseline: Sequence[float]) -> Ratio:
        """`values` and `baseline` have the same length; equal places were measured one after the other."""
        pairs = list(zip(values, baseline, strict=True))
        chance = random.Random(_SEED)
        drawn = sorted(_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLES))
        cut = int(0.025 * _RESAMPLES)
        return cls(value=_ratio(pairs), low=drawn[cut], high=drawn[-cut - 1])


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return median(value for value, _ in pairs) / median(baseline for _, baseline in pairs)
