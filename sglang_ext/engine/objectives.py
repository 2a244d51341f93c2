"""Latency objectives of requests, in seconds: the task's own, else the process's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.latency_bound import read_bound


class Objectives:
    """Objectives of requests.

    Args:
        ttft, tbt: the process's, for every request without its own; None: none.
        step_s: seconds of the unloaded decode step, in whose multiples a bound may be given.
    """

    def __init__(self, ttft: str, tbt: str, step_s: Callable[[], float]) -> None:
        self._step_s = step_s
        self._default = {"ttft": read_bound(ttft), "tbt": read_bound(tbt)}

    def of(self, req: PiecewiseRequest) -> tuple[float | None, float | None]:
        """(seconds to the first token, seconds between two tokens) of a request; None where it has no objective."""
        own = req.task.hint.slo if isinstance(req, TaskRequest) and req.has_task else None
        return self._seconds("ttft", own), self._seconds("tbt", own)

    def _seconds(self, name: str, own: Mapping[str, Any] | None) -> float | None:
        bound = (own or {}).get(name) or self._default[name]
        if not bound:
            return None
        return float(bound["seconds"]) if "seconds" in bound else float(bound["steps"]) * self._step_s()
