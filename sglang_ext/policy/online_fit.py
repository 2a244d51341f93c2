"""A cost model from nothing: a cautious guess, replaced step by step by what is measured.

Where no profile fits, decisions start from a guess that calls prefill expensive, so that the first steps take little
of it. Measured steps are summed into normal equations, older ones fade.
"""

from __future__ import annotations

import math

from sglang_ext.policy.cost_fit import TERMS, features
from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.least_squares import NormalEquations

ROW, TOKEN = 0.05, 0.03
"""The guess: parts of a decode step that a decode row and a token of prefill cost, as on a small CPU."""
FADE = 0.998
"""What a step still counts after the next one: half after 350."""
MOST_OFF = 3.0
"""A step counts as at most so many times as long, or as short, as the model said once it was fitted."""
GUESSED = ((1, 0), (4, 0), (16, 0), (1, 64), (4, 64), (4, 256))
"""Rows and tokens of the steps that are made up from the guess."""


def guess(decode_step_s: float = 0.05) -> CostModel:
    """A cautious model of a machine whose unloaded decode step takes about so many seconds."""
    return CostModel(fixed=(1 - ROW) * decode_step_s, row=ROW * decode_step_s, token=TOKEN * decode_step_s)


class OnlineFit:
    """A cost model without a knee, of the steps so far.

    Args:
        start: what is believed before the first step.
    """

    def __init__(self, start: CostModel) -> None:
        self.model = start
        self.steps = 0
        self._fitted = False
        self._equations = NormalEquations(len(TERMS))
        for rows, tokens in GUESSED:
            load = Load(rows).plus(0, tokens)
            self._add(load, start.time(load))

    def observe(self, load: Load, seconds: float) -> None:
        """One more measured step; one without a positive finite time is ignored."""
        modelled = self.model.time(load)
        if not 0 < seconds < math.inf:
            return
        if modelled > 0 and self._fitted:
            seconds = max(modelled / MOST_OFF, min(modelled * MOST_OFF, seconds))
        self._equations.fade(FADE)
        self._add(load, seconds)
        self.steps += 1

    def refit(self) -> CostModel:
        """The model of all steps so far."""
        self._fitted = self.steps > 0
        self.model = CostModel.of(dict(zip(TERMS, self._equations.solve(), strict=True)))
        return self.model

    def _add(self, load: Load, seconds: float) -> None:
        self._equations.add([each / seconds for each in features(load, 0.0)], 1.0)
