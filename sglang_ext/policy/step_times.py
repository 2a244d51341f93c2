"""A step's time as it is expected now: the cost model, corrected by the steps that were measured.

Each regime (decode alone, mixed, prefill alone) has a factor of its own. A measured step moves its factor by a
small part of its surprise, and the surprise counts up to a bound, so that one outlier does not bend the model; the
factor stays within bounds of its own, so that no series of outliers turns it into something else.
"""

from __future__ import annotations

import math

from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.online_fit import OnlineFit

REGIMES = ("decode", "mixed", "prefill")
GAIN = 0.1
"""Part of a step's surprise that its regime's factor takes over."""
MOST_SURPRISE = 0.2
"""The largest surprise that counts, as a logarithm: a step 22% too slow moves the factor as much as a hung one."""
MOST_FACTOR = math.log(2)
"""The farthest that a factor goes, as a logarithm."""
REFIT = 32
"""Steps after which a model that is learned from nothing is fitted anew."""


class StepTimes:
    """Expected times of steps. With several ranks all must observe the lead rank's times, in the same step.

    Args:
        model: fitted to a profile, or a guess.
        fit: replaces the model as steps are measured, where there is no profile.
    """

    def __init__(self, model: CostModel, fit: OnlineFit | None = None) -> None:
        self.model = model
        self._fit = fit
        self._logs = dict.fromkeys(REGIMES, 0.0)

    def factor(self, regime: str) -> float:
        """Measured over modelled time in a regime, as far as it is believed."""
        return math.exp(self._logs[regime])

    def time(self, load: Load) -> float:
        """Seconds that a step with this load is expected to take."""
        return self.model.time(load) * self.factor(load.regime)

    def room(self, load: Load, context: int, limit_s: float, most: int, given: int = 0) -> int:
        """As `CostModel.room`, corrected."""
        regime = "mixed" if load.rows else "prefill"
        return self.model.room(load, context, limit_s / self.factor(regime), most, given)

    def observe(self, load: Load, seconds: float) -> None:
        """Learn from a measured step; one without a positive finite time is ignored."""
        modelled = self.model.time(load)
        if not (0 < seconds < math.inf) or modelled <= 0:
            return
        old = self._logs[load.regime]
        surprise = math.log(seconds / modelled) - old
        surprise = max(-MOST_SURPRISE, min(MOST_SURPRISE, surprise))
        self._logs[load.regime] = max(-MOST_FACTOR, min(MOST_FACTOR, old + GAIN * surprise))
        if self._fit is not None:
            self._fit.observe(load, seconds)
            if self._fit.steps % REFIT == 0:
                self.model = self._fit.refit()
                self._logs = dict.fromkeys(REGIMES, 0.0)
