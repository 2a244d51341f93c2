"""Figures and ratios of the arms at one load, measured or simulated, for reading."""

from __future__ import annotations

from dataclasses import dataclass

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.attainment import Attainment
from sglang_ext.bench.load_result import DEFAULT, ArmFigures, LoadResult, rate_text
from sglang_ext.bench.run_figures import Gaps
from sglang_ext.bench.spread import Ratio

_COLUMNS = (
    "gap",
    "P95",
    "P99",
    "switch",
    "P95",
    "worst P50",
    "strict",
    "attained",
    "TTFT P95",
    "done P50",
    "P95",
    "tok/s",
)
_BASELINES = {
    "envelope": "best viable stock",
    "plain": "best with the plain client",
    "prewarm": "best that prewarms",
    "default": "default",
}


@dataclass(frozen=True, slots=True)
class LoadTables:
    """Args:
    mark: stands in front of each title, such as `simulated: `; what is simulated says so everywhere.
    title: what ran on what.
    step_s: the unloaded decode step.
    """

    mark: str
    title: str
    step_s: float

    def show(self, load: LoadResult, console: Console, every: bool) -> None:
        """A table of figures, one of ratios for each arm that is not stock, and their fluid limits.

        Args:
            every: all stock arms; else those that are the best of something.
        """
        console.print(self._figures(load, every))
        for name, arm in load.arms.items():
            if arm.ratios:
                console.print(self._ratios(name, arm, load))
        for line in self._fluid(load):
            console.print(line, highlight=False, markup=False)

    def _figures(self, load: LoadResult, every: bool) -> Table:
        rate = rate_text(load.rate)
        table = Table(title=f"{self.mark}{self.title}, {load.load} ({rate})", title_justify="left", box=SIMPLE)
        table.add_column("arm", no_wrap=True)
        for header in _COLUMNS:
            table.add_column(header, justify="right", no_wrap=True)
        best = {arm for by_figure in load.baselines.values() for arm in by_figure.values()}
        for name, arm in load.arms.items():
            if every or not arm.stock or name in best:
                table.add_row(name if arm.viable else f"({name})", *self._cells(arm))
        return table

    def _cells(self, arm: ArmFigures) -> list[str]:
        f = arm.figures
        return [
            *(self._steps(f.line, figure) for figure in ("mean", "p95", "p99")),
            *(self._steps(f.switch, figure) for figure in ("p50", "p95")),
            self._steps(f.worst, "p50"),
            f"{f.strict:.0%}",
            f"{f.attained[Attainment.MEAN]:.0%}",
            self._steps(f.ttft, "p95"),
            f"{f.completion.p50:.2f}",
            f"{f.completion.p95:.2f}",
            f"{f.tokens_per_s:,.0f}",
        ]

    def _ratios(self, name: str, arm: ArmFigures, load: LoadResult) -> Table:
        title = f"{self.mark}{name} against stock, below 1 is better [95%]"
        table = Table(title=title, title_justify="left", box=SIMPLE)
        table.add_column("figure", no_wrap=True)
        for baseline in arm.ratios:
            table.add_column(_BASELINES[baseline], no_wrap=True)
        for figure in dict.fromkeys(figure for found in arm.ratios.values() for figure in found):
            cells = [_ratio(found.get(figure), load.baselines[by].get(figure)) for by, found in arm.ratios.items()]
            table.add_row(figure, *cells)
        return table

    def _fluid(self, load: LoadResult) -> list[str]:
        lines = []
        for name, arm in load.arms.items():
            if arm.stock or arm.fluid is None or arm.figures.line is None:
                continue
            lines.append(
                f"{self.mark}{name}: gap P95 is {arm.figures.line.p95 / arm.fluid.p95:.2f} times the fluid limit of "
                f"its own steps ({arm.fluid.p95 / self.step_s:.2f} steps; mean {arm.fluid.mean / self.step_s:.2f})"
            )
        return lines

    def _steps(self, gaps: Gaps | None, figure: str) -> str:
        return "" if gaps is None else f"{getattr(gaps, figure) / self.step_s:.2f}"


def levels_text(ttft_s: float, tbt_s: float, step_s: float) -> list[str]:
    """What the columns mean."""
    return [
        f"Gaps, switch gaps, worst gaps and TTFT in unloaded decode steps of {step_s * 1000:.2f} ms; done: completion "
        "in seconds. An arm in brackets is not viable; stock arms that are the best of nothing show with --every-arm.",
        f"strict: runs with every gap within {tbt_s / step_s:g} steps. attained: runs with TTFT within "
        f"{ttft_s / step_s:g} steps and a mean gap within {tbt_s / step_s:g}.",
    ]


def _ratio(ratio: Ratio | None, arm: str | None) -> str:
    if ratio is None:
        return ""
    best = "" if arm is None or arm == DEFAULT else f"\n{arm}"
    return f"{ratio.value:.2f} [{ratio.low:.2f}-{ratio.high:.2f}]{best}"
