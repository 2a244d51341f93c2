"""What an arm competes with: the best of the stock settings that are viable, figure by figure."""

from __future__ import annotations

from collections.abc import Mapping

from sglang_ext.bench.attainment import Attainment
from sglang_ext.bench.run_figures import Figure, RunSet

# How far a viable setting's completion may be behind the best stock setting's.
MOST_BEHIND = 1.25

LOW_FIGURES: dict[str, Figure] = {
    "gap mean": lambda runs, w: runs.line.mean(w),
    "gap P50": lambda runs, w: runs.line.percentile(0.5, w),
    "gap P95": lambda runs, w: runs.line.percentile(0.95, w),
    "gap P99": lambda runs, w: runs.line.percentile(0.99, w),
    "switch P50": lambda runs, w: runs.switch.percentile(0.5, w),
    "switch P95": lambda runs, w: runs.switch.percentile(0.95, w),
    "worst P50": lambda runs, w: runs.worst.percentile(0.5, w),
    "worst P95": lambda runs, w: runs.worst.percentile(0.95, w),
    "TTFT P95": lambda runs, w: runs.ttft.percentile(0.95, w),
    "final TTFT P95": lambda runs, w: runs.final_ttft.percentile(0.95, w),
    "completion P50": lambda runs, w: runs.completion.percentile(0.5, w),
    "completion P95": lambda runs, w: runs.completion.percentile(0.95, w),
}
"""Figures in seconds, of which less is better."""
HIGH_FIGURES: dict[str, Figure] = {
    "strict": lambda runs, w: runs.share_kept(Attainment.STRICT, w),
    "attained": lambda runs, w: runs.share_kept(Attainment.MEAN, w),
}
"""Shares of runs, of which more is better: every gap within the level; and the definition `mean`."""


def viable(sets: Mapping[str, RunSet], stock: Mapping[str, RunSet]) -> set[str]:
    """Names in `sets` with a completion P95 within 1.25 times the best stock's, that keep TTFT where a stock does."""
    best = min((runs.completion.percentile(0.95) for runs in stock.values()), default=None)
    if best is None:
        return set(sets)
    quick = any(_keeps_ttft(runs) for runs in stock.values())
    return {
        name
        for name, runs in sets.items()
        if runs.completion.percentile(0.95) <= MOST_BEHIND * best and (not quick or _keeps_ttft(runs))
    }


def envelope(able: Mapping[str, RunSet]) -> dict[str, str]:
    """The name of the best of some viable stock settings, for each figure that they have."""
    found: dict[str, str] = {}
    if not able:
        return found
    for name, figure in LOW_FIGURES.items():
        if all(has(runs, name) for runs in able.values()):
            found[name] = min(able, key=lambda arm, f=figure: f(able[arm], None))  # type: ignore[misc]
    for name, figure in HIGH_FIGURES.items():
        found[name] = max(able, key=lambda arm, f=figure: f(able[arm], None))  # type: ignore[misc]
    return found


def has(runs: RunSet, figure: str) -> bool:
    """Whether the runs have any value for a figure: those of one task have no switch."""
    if figure.startswith("switch"):
        return bool(runs.switch)
    return bool(runs.line) if figure.startswith(("gap", "worst")) else True


def _keeps_ttft(runs: RunSet) -> bool:
    return runs.ttft.percentile(0.95) <= runs.levels.ttft_s
