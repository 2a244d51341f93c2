"""Latency objectives of requests, in seconds: the task's own, else the process's."""

from __future__ import annotations

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.latency_bound import read_bound
from sglang_ext.tasks.hint import Latency, Slo


class Objectives:
    """Objectives of requests.

    Args:
        ttft, tbt: the process's, for every request without its own; empty: none.
        step_s: seconds of the unloaded decode step, in whose multiples a bound may be given; set anew each step.
    """

    def __init__(self, ttft: str, tbt: str, step_s: float) -> None:
        self.step_s = step_s
        self._default = Slo(ttft=_latency(ttft), tbt=_latency(tbt))

    def of(self, req: PiecewiseRequest) -> tuple[float | None, float | None]:
        """(seconds to the first token, seconds between two tokens) of a request; None where it has no objective."""
        default = self._default
        own = req.task.hint.slo if isinstance(req, TaskRequest) and req.has_task else None
        if own is None:
            return self._seconds(default.ttft), self._seconds(default.tbt)
        return self._seconds(own.ttft or default.ttft), self._seconds(own.tbt or default.tbt)

    def _seconds(self, bound: Latency | None) -> float | None:
        if bound is None:
            return None
        return bound.seconds if bound.seconds is not None else (bound.steps or 0.0) * self.step_s


def _latency(text: str) -> Latency | None:
    bound = read_bound(text)
    return None if bound is None else Latency(**bound)
