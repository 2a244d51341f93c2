"""From the steps of settings to measurements, the fitted cost model, its error, and the noise beside it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from sglang_ext.bench.step_log import Step
from sglang_ext.policy.cost_fit import Sample, errors, fit
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.profile.profile import Measurement

HELD_OUT = 0.1

MakeUp = tuple[int, tuple[tuple[int, int], ...]]
"""Sequences that decode, and pieces of prompts."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Args:
    cost: with its errors on what was held out.
    noise, drift: as a profile has them.
    """

    cost: CostModel
    noise: dict[str, float]
    drift: dict[str, float]
    measurements: tuple[Measurement, ...]


class Measurements:
    """The steps so far, those of one visit and make-up together."""

    def __init__(self) -> None:
        self._visits: list[tuple[int, dict[MakeUp, list[Step]]]] = []

    def __len__(self) -> int:
        return sum(len(steps) for _, made in self._visits for steps in made.values())

    def add(self, setting: int, steps: Iterable[Step]) -> None:
        """Another visit. Args: setting: its number; a setting that comes again keeps it."""
        made: dict[MakeUp, list[Step]] = {}
        for step in steps:
            made.setdefault((step.decodes, tuple(sorted(step.chunks))), []).append(step)
        self._visits.append((setting, made))

    def list(self, seed: int = 0) -> list[Measurement]:
        """All of them; those of a tenth of the settings, drawn by `seed`, are to be held out.

        A tenth of those where nothing decodes, which are few, and a tenth of the others.
        """
        every = {setting for setting, _ in self._visits}
        prefill = {setting for setting, made in self._visits if any(rows == 0 for rows, _ in made)}
        draw = random.Random(seed)
        apart: set[int] = set()
        for kind in (prefill, every - prefill):
            apart.update(draw.sample(sorted(kind), math.ceil(len(kind) * HELD_OUT)))
        return [
            Measurement(
                setting=setting,
                visit=visit,
                rows=rows,
                context=round(mean(step.context for step in steps)),
                pieces=pieces,
                seconds=tuple(round(step.seconds, 6) for step in steps),
                held_out=setting in apart,
            )
            for visit, (setting, made) in enumerate(self._visits)
            for (rows, pieces), steps in made.items()
        ]


def fitted(measurements: Sequence[Measurement]) -> Fitted:
    """Fit all that is not held out, by the median of each; errors, noise and drift are those of single steps.

    Raises:
        ValueError: there are too few.
    """
    kept = [Sample(each.load, median(each.seconds)) for each in measurements if not each.held_out]
    apart = [Sample(each.load, s) for each in measurements if each.held_out for s in each.seconds]
    model = fit(kept, held_out=0.0)
    model = model.with_errors(errors(model, apart))
    return Fitted(model, noise(measurements), drift(measurements), tuple(measurements))


def noise(measurements: Iterable[Measurement]) -> dict[str, float]:
    """How far a step is from the truth of its make-up and visit, by regime and `all`, as a mean relative error.

    The truth is not known, the mean of n other steps is: from that a step is off by sqrt(1 + 1 / n) times as much.
    """
    found = _Errors()
    for each in measurements:
        others = len(each.seconds) - 1
        for i, seconds in enumerate(each.seconds if others else ()):
            found.add(each, seconds, mean(each.seconds[:i] + each.seconds[i + 1 :]), others)
    return found.means()


def drift(measurements: Iterable[Measurement]) -> dict[str, float]:
    """As `noise`, against other visits; empty where no setting came again."""
    same: dict[tuple[int, MakeUp], list[Measurement]] = {}
    for each in measurements:
        same.setdefault((each.setting, (each.rows, each.pieces)), []).append(each)
    found = _Errors()
    for visits in same.values():
        for each in visits:
            others = [mean(other.seconds) for other in visits if other is not each]
            for seconds in each.seconds if others else ():
                found.add(each, seconds, mean(others), len(others))
    return found.means()


class _Errors:
    """Relative errors against the mean of others, by regime; their own share of the error is taken out."""

    def __init__(self) -> None:
        self._found: dict[str, list[float]] = {}

    def add(self, measurement: Measurement, seconds: float, mean_of_others: float, others: int) -> None:
        off = abs(mean_of_others - seconds) / seconds * (others / (others + 1)) ** 0.5
        for regime in ("all", measurement.load.regime):
            self._found.setdefault(regime, []).append(off)

    def means(self) -> dict[str, float]:
        return {regime: mean(values) for regime, values in self._found.items()}
