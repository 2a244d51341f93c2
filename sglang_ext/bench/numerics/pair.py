"""Two arms' answers to the same prompts, compared."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import median

import numpy as np
from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.numerics.answers import Answer
from sglang_ext.bench.quantities import Values
from sglang_ext.bench.spread import Ratio

_RESAMPLES, _SEED = 2000, 0
_Z = 1.96


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Share(_Model):
    """So many of all, with the 95% interval of the share by Wilson."""

    count: int
    of: int
    value: float
    low: float
    high: float

    @classmethod
    def count_of(cls, flags: Sequence[bool]) -> Share:
        """Args: flags: one at least."""
        count, of = sum(flags), len(flags)
        share, z = count / of, _Z
        middle = (share + z * z / (2 * of)) / (1 + z * z / of)
        half = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
        return cls(count=count, of=of, value=share, low=max(0.0, middle - half), high=min(1.0, middle + half))


class Difference(_Model):
    """Over the prompts, of each the largest difference between logprobs of the first output token that both arms have
    among their most likely ones.
    """

    mean: float
    p50: float
    p95: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Difference:
        found = Values([values])
        return cls(mean=found.mean(), p50=found.percentile(0.5), p95=found.percentile(0.95), most=found.most)


class Pair(_Model):
    """Args:
    first_token: prompts whose first output tokens differ.
    output: prompts whose outputs differ somewhere.
    where: the median of the places of the first differing tokens, from 0; None where none differ.
    logprobs: how far apart the first tokens' are.
    widest_tie: of the prompts whose first tokens differ the most that the second arm preferred its token to the other
        arm's, in logprobs; infinite if that was not among its most likely ones, None where none differ.
    """

    arm: str
    other: str
    first_token: Share
    output: Share
    where: float | None
    logprobs: Difference
    widest_tie: float | None


def compare(arm: str, other: str, own: Sequence[Answer], others: Sequence[Answer]) -> Pair:
    """Args: own, others: answers to the same prompts in the same order, one at least."""
    pairs = list(zip(own, others, strict=True))
    first = [a.ids[0] != b.ids[0] for a, b in pairs]
    places = [place for a, b in pairs if (place := first_difference(a.ids, b.ids)) is not None]
    ties = [
        b.top[b.ids[0]] - b.top.get(a.ids[0], -np.inf) for (a, b), differ in zip(pairs, first, strict=True) if differ
    ]
    return Pair(
        arm=arm,
        other=other,
        first_token=Share.count_of(first),
        output=Share.count_of(flips(own, others)),
        where=median(places) if places else None,
        logprobs=Difference.of([logprob_difference(a, b) for a, b in pairs]),
        widest_tie=max(ties) if ties else None,
    )


def first_difference(ids: Sequence[int], others: Sequence[int]) -> int | None:
    """The place of the first token that differs; None if none does. Equal lengths."""
    return next((place for place, (a, b) in enumerate(zip(ids, others, strict=True)) if a != b), None)


def flips(own: Sequence[Answer], others: Sequence[Answer]) -> list[bool]:
    """Whether outputs differ, prompt by prompt."""
    return [a.ids != b.ids for a, b in zip(own, others, strict=True)]


def logprob_difference(answer: Answer, other: Answer) -> float:
    """The largest over the tokens that both have."""
    return max(
        (abs(answer.top[token] - other.top[token]) for token in answer.top.keys() & other.top.keys()), default=0.0
    )


def flip_ratio(flags: Sequence[bool], baseline: Sequence[bool]) -> Ratio | None:
    """The rate of flips over that of the baseline, with its 95% interval by drawing prompts again, the same of both.

    None where the baseline has none; draws in which it has none do not count.
    """
    own, under = np.array(flags, dtype=float), np.array(baseline, dtype=float)
    if not under.any():
        return None
    drawn = np.random.default_rng(_SEED).integers(len(own), size=(_RESAMPLES, len(own)))
    above, below = own[drawn].sum(axis=1), under[drawn].sum(axis=1)
    usable = below > 0
    low, high = np.percentile(above[usable] / below[usable], [2.5, 97.5])
    return Ratio(value=float(own.sum() / under.sum()), low=float(low), high=float(high))
