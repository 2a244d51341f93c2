"""The record of `grape bench simulate` for reading."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.attainment import Attainment
from sglang_ext.bench.load_result import DEFAULT, ArmFigures, LoadResult
from sglang_ext.bench.run_figures import Gaps
from sglang_ext.bench.simulation.record import SimulationRecord
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


def show(record: SimulationRecord, console: Console, every: bool = False) -> None:
    """Per load a table of figures, one of ratios for each policy, and what stands in them.

    Args:
        every: all stock arms; else those that are the best of something.
    """
    step = record.unloaded_s
    for load in record.loads:
        console.print(_figures(record, load, every))
        for name, arm in load.arms.items():
            if arm.ratios:
                console.print(_ratios(name, arm, load))
        for line in _fluid(load, step):
            console.print(line, highlight=False, markup=False)
    for line in _legend(record):
        console.print(line, highlight=False, markup=False)


def _figures(record: SimulationRecord, load: LoadResult, every: bool) -> Table:
    rate = "closed loop" if load.rate is None else f"{load.rate:g} runs/s"
    title = f"simulated: {record.settings['workload']} on {record.machine['name']}, {load.load} ({rate})"
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("arm", no_wrap=True)
    for header in _COLUMNS:
        table.add_column(header, justify="right", no_wrap=True)
    best = {arm for by_figure in load.baselines.values() for arm in by_figure.values()}
    for name, arm in load.arms.items():
        if every or not arm.stock or name in best:
            table.add_row(name if arm.viable else f"({name})", *_cells(arm, record.unloaded_s))
    return table


def _cells(arm: ArmFigures, step: float) -> list[str]:
    f = arm.figures
    return [
        *(_steps(f.line, figure, step) for figure in ("mean", "p95", "p99")),
        *(_steps(f.switch, figure, step) for figure in ("p50", "p95")),
        _steps(f.worst, "p50", step),
        f"{f.strict:.0%}",
        f"{f.attained[Attainment.MEAN]:.0%}",
        _steps(f.ttft, "p95", step),
        f"{f.completion.p50:.2f}",
        f"{f.completion.p95:.2f}",
        f"{f.tokens_per_s:,.0f}",
    ]


def _ratios(name: str, arm: ArmFigures, load: LoadResult) -> Table:
    table = Table(title=f"simulated: {name} against stock, below 1 is better [95%]", title_justify="left", box=SIMPLE)
    table.add_column("figure", no_wrap=True)
    for baseline in arm.ratios:
        table.add_column(_BASELINES[baseline], no_wrap=True)
    for figure in dict.fromkeys(figure for found in arm.ratios.values() for figure in found):
        cells = [_ratio(found.get(figure), load.baselines[by].get(figure)) for by, found in arm.ratios.items()]
        table.add_row(figure, *cells)
    return table


def _fluid(load: LoadResult, step: float) -> list[str]:
    lines = []
    for name, arm in load.arms.items():
        if arm.stock or arm.fluid is None or arm.figures.line is None:
            continue
        lines.append(
            f"{name}: gap P95 is {arm.figures.line.p95 / arm.fluid.p95:.2f} times the fluid limit of its own steps "
            f"({arm.fluid.p95 / step:.2f} steps; mean {arm.fluid.mean / step:.2f}), simulated"
        )
    return lines


def _legend(record: SimulationRecord) -> list[str]:
    step, settings = record.unloaded_s, record.settings
    return [
        "Every figure is simulated; none was measured on an engine.",
        f"Gaps, switch gaps, worst gaps and TTFT in unloaded decode steps of {step * 1000:.2f} ms; done: completion in "
        "seconds. An arm in brackets is not viable; stock arms that are the best of nothing show with --every-arm.",
        f"strict: runs with every gap within {record.tbt_s / step:g} steps. attained: runs with TTFT within "
        f"{record.ttft_s / step:g} steps and a mean gap within {record.tbt_s / step:g}.",
        f"{settings['seeds']} repetitions of {settings['runs']} runs and {settings['seconds']:g} s at least; "
        f"inputs: {settings['inputs']}; arrivals: {settings['arrivals']}; overlap: {record.machine['overlap']}.",
    ]


def _steps(gaps: Gaps | None, figure: str, step: float) -> str:
    return "" if gaps is None else f"{getattr(gaps, figure) / step:.2f}"


def _ratio(ratio: Ratio | None, arm: str | None) -> str:
    if ratio is None:
        return ""
    best = "" if arm is None or arm == DEFAULT else f"\n{arm}"
    return f"{ratio.value:.2f} [{ratio.low:.2f}-{ratio.high:.2f}]{best}"
