"""What fell short, from the figures alone."""

from __future__ import annotations

from collections.abc import Iterator

from sglang_ext.bench.report.figure_names import BASELINES, side
from sglang_ext.bench.report.report import Report, Section

# What is behind by less is not worth a line; the tables have it.
LEAST_BEHIND = 1.02


def shortcomings(report: Report) -> list[str]:
    """Goals that were missed or not measured, arms of Grape that are not viable, and figures in which they are behind.

    An arm is behind where the whole interval of its ratio to the best viable stock setting is above 1, and the ratio
    itself above 1.02.
    """
    found = [f"Goal missed: {v.goal}. Found: {v.found}." for v in report.verdicts if v.met is False]
    found += [f"Goal not measured: {v.goal}." for v in report.verdicts if v.met is None]
    for section in report.sections:
        found += _of(section)
    return found


def _of(section: Section) -> Iterator[str]:
    for name, arm in section.whole.items():
        if not arm.viable:
            yield f"{section.title}: {name} is not viable."
        behind = [
            f"{figure} ({ratio.value:.2f} times, {ratio.low:.2f} to {ratio.high:.2f})"
            for figure, ratio in arm.ratios.get("envelope", {}).items()
            if side(ratio) == "worse" and ratio.value > LEAST_BEHIND
        ]
        if behind:
            yield f"{section.title}: {name} is behind the {BASELINES['envelope']} setting in {', '.join(behind)}."
