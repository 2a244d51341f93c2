"""From the steps of settings to measurements, the fitted cost model, its error, and the noise beside it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from sglang_ext.bench.step_log import Step
from sglang_ext.policy.cost_fit import Sample, errors, fit
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.profile.profile import Measurement

HELD_OUT = 0.1
LEAST_REPEATS = 2


@dataclass(frozen=True, slots=True)
class Fitted:
    """Args:
    cost: with its errors on what was held out.
    noise: mean relative error of a step against others of its make-up, by regime and `all`.
    """

    cost: CostModel
    noise: dict[str, float]
    measurements: tuple[Measurement, ...]


class Measurements:
    """The steps so far, those of one setting and make-up together."""

    def __init__(self) -> None:
        self._steps: dict[tuple[int, int, tuple[tuple[int, int], ...]], list[Step]] = {}

    def __len__(self) -> int:
        return sum(len(steps) for steps in self._steps.values())

    def add(self, setting: int, steps: Iterable[Step]) -> None:
        """Args: setting: its number; a setting that comes again keeps it."""
        for step in steps:
            self._steps.setdefault((setting, step.decodes, tuple(sorted(step.chunks))), []).append(step)

    def list(self, seed: int = 0) -> list[Measurement]:
        """All of them; those of a tenth of the settings, drawn by `seed`, are to be held out."""
        settings = sorted({setting for setting, _, _ in self._steps})
        apart = set(random.Random(seed).sample(settings, round(len(settings) * HELD_OUT)))
        return [
            Measurement(
                setting=setting,
                rows=rows,
                context=round(mean(step.kv for step in steps)),
                pieces=pieces,
                seconds=tuple(round(step.seconds, 6) for step in steps),
                held_out=setting in apart,
            )
            for (setting, rows, pieces), steps in self._steps.items()
        ]


def fitted(measurements: Sequence[Measurement]) -> Fitted:
    """Fit all that is not held out, by the median of each; errors and noise are those of single steps.

    Raises:
        ValueError: there are too few.
    """
    kept = [Sample(each.load, median(each.seconds)) for each in measurements if not each.held_out]
    apart = [Sample(each.load, s) for each in measurements if each.held_out for s in each.seconds]
    model = fit(kept, held_out=0.0)
    return Fitted(model.with_errors(errors(model, apart)), noise(measurements), tuple(measurements))


def noise(measurements: Iterable[Measurement]) -> dict[str, float]:
    """How far a step is from others of its make-up, by regime and `all`: the mean relative error of a perfect model.

    The others' own noise is taken out: against the mean of n - 1 others a step is off by sqrt(n / (n - 1)) times as
    much as against the truth.
    """
    found: dict[str, list[float]] = {}
    for each in measurements:
        count = len(each.seconds)
        if count < LEAST_REPEATS:
            continue
        for i, seconds in enumerate(each.seconds):
            others = mean(each.seconds[:i] + each.seconds[i + 1 :])
            off = abs(others - seconds) / seconds * ((count - 1) / count) ** 0.5
            found.setdefault("all", []).append(off)
            found.setdefault(each.load.regime, []).append(off)
    return {regime: mean(values) for regime, values in found.items()}
