"""What an arm competes with: the best of the stock settings that are viable, figure by figure."""

from __future__ import annotations

from collections.abc import Mapping

from sglang_ext.bench.run_figures import RunSet
from sglang_ext.bench.run_ratio import Figure

# How far a viable setting's completion may be behind the best stock setting's.
MOST_BEHIND = 1.25

FIGURES: dict[str, Figure] = {
    "gap mean": Figure("line"),
    "gap P50": Figure("line", 0.5),
    "gap P95": Figure("line", 0.95),
    "gap P99": Figure("line", 0.99),
    "switch P50": Figure("switch", 0.5),
    "switch P95": Figure("switch", 0.95),
    "worst P50": Figure("worst", 0.5),
    "worst P95": Figure("worst", 0.95),
    "TTFT P95": Figure("ttft", 0.95),
    "final TTFT P95": Figure("final_ttft", 0.95),
    "completion P50": Figure("completion", 0.5),
    "completion P95": Figure("completion", 0.95),
}
"""What is compared, by name; less is better."""


def viable(sets: Mapping[str, RunSet], stock: Mapping[str, RunSet]) -> set[str]:
    """Names in `sets` of the arms that do not buy one figure with another.

    Their completion P95 is within 1.25 times the best stock setting's, and where a stock setting of which this holds
    keeps the TTFT level with its P95, so do they.
    """
    if not stock:
        return set(sets)
    most = MOST_BEHIND * min(runs.completion.percentile(0.95) for runs in stock.values())
    in_time = {name for name, runs in sets.items() if runs.completion.percentile(0.95) <= most}
    if not any(_keeps_ttft(runs) for runs in stock.values() if runs.completion.percentile(0.95) <= most):
        return in_time
    return {name for name in in_time if _keeps_ttft(sets[name])}


def envelope(able: Mapping[str, RunSet]) -> dict[str, str]:
    """The name of the best of some viable stock settings, for each figure that they have."""
    found: dict[str, str] = {}
    for name, figure in FIGURES.items():
        values = {arm: figure.value(runs) for arm, runs in able.items() if figure.values(runs)}
        if values:
            found[name] = min(values, key=values.__getitem__)
    return found


def _keeps_ttft(runs: RunSet) -> bool:
    return runs.ttft.percentile(0.95) <= runs.levels.ttft_s
