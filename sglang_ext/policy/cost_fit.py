"""Fitting the cost model to measured steps.

The squared relative error is least, so that a step of 5 ms counts as much as one of 500; steps far off are given
less weight, since a machine that is shared has some. A part of the steps is held out, and the error on them is
stored with the model.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.least_squares import solve

TERMS = ("fixed", "row", "token", "prefill", "piece", "kv", "attention", "beyond")
"""Coefficients of a cost model in the order of `features`."""

ROUNDS = 4
"""Fits with weights by the errors of the one before."""
FAR = 2.0
"""Multiple of the typical error from which on a step counts less."""
WORTH = 0.95
"""A knee is kept where it brings the error below this part of that without one."""
KNEES = 24
"""How many places of the knee are tried."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A measured step."""

    load: Load
    seconds: float


def features(load: Load, knee: float) -> list[float]:
    """What each coefficient of the model is multiplied with, in the order of `TERMS`."""
    size = load.rows + load.tokens
    return [
        1.0,
        load.rows,
        load.tokens,
        1.0 if load.tokens else 0.0,
        load.pieces if load.tokens else 0.0,
        load.kv,
        load.attention,
        max(0.0, size - knee) if knee else 0.0,
    ]


def fit(samples: Sequence[Sample], held_out: float = 0.1, seed: int = 0) -> CostModel:
    """The model of measured steps, with its errors on held-out ones.

    Args:
        held_out: the part of the steps that the fit does not see, drawn at random by `seed`.

    Raises:
        ValueError: there are fewer than ten steps, or one took no time.
    """
    if len(samples) < 10:
        raise ValueError(f"a cost model needs at least 10 measured steps; received {len(samples)}")
    for sample in samples:
        if not sample.seconds > 0:
            raise ValueError(f"a step takes longer than 0 s; received {sample.seconds!r} for {sample.load}")
    order = list(samples)
    random.Random(seed).shuffle(order)
    apart = round(len(order) * held_out)
    kept = order[apart:]
    best = _fit_with_knee(kept, 0.0)
    least = _mean_error(best, kept)
    for knee in _knees(kept):
        model = _fit_with_knee(kept, knee)
        error = _mean_error(model, kept)
        if model.beyond and error < least * (WORTH if not best.knee else 1.0):
            best, least = model, error
    return best.with_errors(errors(best, order[:apart])) if apart else best


def errors(model: CostModel, samples: Iterable[Sample]) -> dict[str, float]:
    """The mean relative error by regime, and over `all`; regimes without a step are left out."""
    found: dict[str, list[float]] = {}
    for sample in samples:
        error = abs(model.time(sample.load) - sample.seconds) / sample.seconds
        found.setdefault("all", []).append(error)
        found.setdefault(sample.load.regime, []).append(error)
    return {regime: sum(values) / len(values) for regime, values in found.items()}


def _knees(samples: Sequence[Sample]) -> list[float]:
    """Places for a knee with steps on both sides, evenly on a logarithmic scale."""
    sizes = sorted({sample.load.rows + sample.load.tokens for sample in samples})
    if len(sizes) < 4:
        return []
    low, high = max(2, sizes[1]), sizes[-2]
    if high <= low:
        return []
    return sorted({round(low * (high / low) ** (i / (KNEES - 1))) for i in range(KNEES)})


def _fit_with_knee(samples: Sequence[Sample], knee: float) -> CostModel:
    weights = [1.0] * len(samples)
    model = CostModel(fixed=0.0)
    for _ in range(ROUNDS):
        rows = (
            ([each / sample.seconds for each in features(sample.load, knee)], 1.0, weight)
            for sample, weight in zip(samples, weights, strict=True)
        )
        values = dict(zip(TERMS, solve(rows, len(TERMS)), strict=True))
        model = CostModel.of(values, knee if values["beyond"] else 0.0)
        off = [abs(model.time(sample.load) / sample.seconds - 1) for sample in samples]
        far = FAR * sorted(off)[len(off) // 2]
        weights = [1.0 if each <= far else far / each for each in off]
    return model


def _mean_error(model: CostModel, samples: Sequence[Sample]) -> float:
    """The mean relative error, with steps far off counted as the ninth tenth."""
    off = sorted(abs(model.time(sample.load) / sample.seconds - 1) for sample in samples)
    most = off[(9 * len(off)) // 10]
    return sum(min(each, most) for each in off) / len(off)
