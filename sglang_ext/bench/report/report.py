"""What the page shows, whichever command the record is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.verdict import Verdict

Facts = Mapping[str, str]
"""Short names and values, in the order in which they stand."""


@dataclass(frozen=True, slots=True)
class ArmText:
    """What an arm is. Args: settings: of its engine, where the record has them."""

    about: str
    settings: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Arms side by side at one load.

    Args:
        title: what ran, at which load.
        note: what this load is for.
        parts: arms without a part stand beside the whole, so being behind is no shortcoming.
    """

    title: str
    note: str
    result: LoadResult
    parts: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One workload at several loads with rates. Args: results: at least two, by rising rate."""

    title: str
    results: Sequence[LoadResult]


@dataclass(frozen=True, slots=True)
class Report:
    """Args:
    mark: in front of every heading, such as `Simulated: `; empty where an engine was measured.
    warnings: what a reader has to know before everything else.
    summary: sentences: what was compared with what, on what, when.
    step_s: u, the unloaded decode step, in which gaps are given.
    loads: sentences: how the loads were fixed.
    """

    mark: str
    title: str
    warnings: Sequence[str]
    summary: Sequence[str]
    facts: Mapping[str, Facts]
    loads: Sequence[str]
    step_s: float
    ttft_s: float
    tbt_s: float
    arms: Mapping[str, ArmText]
    sections: Sequence[Section]
    series: Sequence[Series]
    verdicts: Sequence[Verdict]
