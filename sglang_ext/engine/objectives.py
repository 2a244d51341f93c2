"""Latency objectives of requests, in seconds: the task's own, else the process's."""

from __future__ import annotations

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.latency_bound import read_bound
from sglang_ext.tasks.hint import Latency, Slo


class Objectives:
    """Objectives of requests.

    Args:
        ttft, tbt: the process's, for every request without its own; empty: none.
        step_s: seconds of the unloaded decode step, in whose multiples a bound may be given; set anew each step.
    """

    def __init__(self, ttft: str, tbt: str, step_s: float) -> None:
        self._default = Slo(ttft=_latency(ttft), tbt=_latency(tbt))
        self.step_s = step_s

    @property
    def step_s(self) -> float:
        return self._step_s

    @step_s.setter
    def step_s(self, seconds: float) -> None:
        self._step_s = seconds
        self.usual = self._seconds(self._default.ttft), self._seconds(self._default.tbt)
        """Those of requests without their own."""

    def of(self, req: PiecewiseRequest) -> tuple[float | None, float | None]:
        """(seconds to the first token, seconds between two tokens) of a request; None where it has no objective."""
        own = req.slo
        if own is None:
            return self.usual
        default = self._default
        return self._seconds(own.ttft or default.ttft), self._seconds(own.tbt or default.tbt)

    def _seconds(self, bound: Latency | None) -> float | None:
        if bound is None:
            return None
        return bound.seconds if bound.seconds is not None else (bound.steps or 0.0) * self._step_s


def _latency(text: str) -> Latency | None:
    bound = read_bound(text)
    return None if bound is None else Latency(**bound)
