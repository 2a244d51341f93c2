"""What the page shows, whichever command the record is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sglang_ext.bench.load_result import ArmFigures, LoadResult
from sglang_ext.bench.verdict import Verdict

ABOUT = (
    "A workflow is a graph of calls of a language model, its tasks; the prompt of one may hold what others write. "
    "Grape gives the engine all tasks at once and prefills the prompts while the tasks before them still write. "
    "Stock SGLang gets a task from its client when the prompt is complete."
)
"""What is compared, for somebody who has not heard of it."""
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
        lacking: arms of Grape without some part of it, so that their being behind is no shortcoming.
        parts: what is compared is Grape's arms with each other.
    """

    title: str
    note: str
    result: LoadResult
    lacking: frozenset[str] = frozenset()
    parts: bool = False

    @property
    def whole(self) -> dict[str, ArmFigures]:
        """Grape's arms that lack nothing, where it is them that are compared with stock."""
        arms = {} if self.parts else self.result.arms
        return {name: arm for name, arm in arms.items() if not arm.stock and name not in self.lacking}


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
    summary: paragraphs: what was compared with what, on what, when.
    workloads: the tasks of what ran.
    step_s: u, the unloaded decode step, in which gaps are given.
    loads: sentences: how the loads were fixed.
    """

    mark: str
    title: str
    warnings: Sequence[str]
    summary: Sequence[str]
    facts: Mapping[str, Facts]
    workloads: Facts
    loads: Sequence[str]
    step_s: float
    ttft_s: float
    tbt_s: float
    arms: Mapping[str, ArmText]
    sections: Sequence[Section]
    series: Sequence[Series]
    verdicts: Sequence[Verdict]
