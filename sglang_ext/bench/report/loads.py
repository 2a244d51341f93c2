"""Loads in words, and results in the order of their rates."""

from __future__ import annotations

from collections.abc import Sequence

from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.report.report import Series

LOADS = (
    "knee: the rate at which decode rows x tasks / tokens passes 5% under stock's default, where other tasks' prefill "
    "begins to show in its P95 gap; half: half of it.",
    "busy: the rate up to which the best of stock's settings with a plain client attains 84% of the service levels.",
    "closed: so many runs at once, the next one as soon as one ends; throughput is measured there, since with given "
    "arrivals it only echoes them.",
)


def load_title(workload: str, result: LoadResult) -> str:
    rate = "closed loop" if result.rate is None else f"{result.rate:g} runs/s"
    named = result.rate is not None and result.load != f"{result.rate:g}"
    return f"{workload}, {result.load} ({rate})" if named else f"{workload}, {rate}"


def series_of(title: str, results: Sequence[LoadResult]) -> list[Series]:
    """One, if there are two rates at least."""
    rated = sorted((result for result in results if result.rate is not None), key=lambda result: result.rate or 0.0)
    return [Series(title, rated)] if len({result.rate for result in rated}) > 1 else []
