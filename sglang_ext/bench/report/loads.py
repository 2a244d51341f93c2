"""Loads and workloads in words, and results in the order of their rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sglang_ext.bench.load_result import LoadResult, rate_text
from sglang_ext.bench.report.report import Series

CLOSED = "closed"
LOADS = {
    "knee": "The rate at which decode rows x tasks / tokens passes 5% under stock's default, where other tasks' "
    "prefill begins to show in its P95 gap.",
    "half": "Half of the rate at which decode rows x tasks / tokens passes 5% under stock's default.",
    "busy": "The rate up to which the best of stock's settings with a plain client attains 84% of the service levels.",
    CLOSED: "So many runs at once, the next one as soon as one ends. Throughput is measured here, since with given "
    "arrivals it only echoes them.",
}
"""What a load is, by its name; one that is a number needs no words."""
WORKLOADS = {
    "search": "rewriter, searcher over given paragraphs, generator, safety checker",
    "code": "product planner, framework designer, project planner, code generator, test validator",
    "summary": "one task per part of a long text, at most 4 parts of 400 tokens, each reading the summary before it",
    "chat": "one: an ordinary request",
}
"""The tasks of each workload."""


def load_title(workload: str, result: LoadResult) -> str:
    rate = rate_text(result.rate)
    named = result.rate is not None and result.load in LOADS
    return f"{workload}, {result.load} ({rate})" if named else f"{workload}, {rate}"


def load_note(result: LoadResult) -> str:
    """What the load is for; nothing where it is just a rate."""
    return LOADS.get(CLOSED if result.rate is None else result.load, "")


def workload_facts(names: Iterable[str]) -> dict[str, str]:
    """The tasks of some workloads."""
    return {name: WORKLOADS[name] for name in names if name in WORKLOADS}


def series_of(title: str, results: Sequence[LoadResult]) -> list[Series]:
    """One, if there are two rates at least."""
    rated = sorted((result for result in results if result.rate is not None), key=lambda result: result.rate or 0.0)
    return [Series(title, rated)] if len({result.rate for result in rated}) > 1 else []
