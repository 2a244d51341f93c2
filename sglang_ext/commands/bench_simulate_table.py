"""The record of `grape bench simulate` for reading."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.attainment import Attainment
from sglang_ext.bench.run_figures import Gaps
from sglang_ext.bench.simulation.comparison import ArmFigures, LoadResult
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


def show(record: SimulationRecord, console: Console) -> None:
    """Per load a table of figures, one of ratios, and what stands in them."""
    step = record.unloaded_s
    for load in record.loads:
        console.print(_figures(record, load))
        ratios = _ratios(load)
        if ratios.row_count:
            console.print(ratios)
        for line in _fluid(load, step):
            console.print(line, highlight=False, markup=False)
    for line in _legend(record):
        console.print(line, highlight=False, markup=False)


def _figures(record: SimulationRecord, load: LoadResult) -> Table:
    rate = "closed loop" if load.rate is None else f"{load.rate:g} runs/s"
    title = f"simulated: {record.settings['workload']} on {record.machine['name']}, {load.load} ({rate})"
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("arm", no_wrap=True)
    for header in _COLUMNS:
        table.add_column(header, justify="right", no_wrap=True)
    for name, arm in load.arms.items():
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


def _ratios(load: LoadResult) -> Table:
    table = Table(title="simulated: ratios, below 1 is better [95%]", title_justify="left", box=SIMPLE)
    table.add_column("figure")
    table.add_column("best viable stock")
    ours = {name: arm for name, arm in load.arms.items() if arm.to_envelope or arm.to_default}
    for name in ours:
        table.add_column(f"{name} / envelope", justify="right")
        table.add_column("/ default", justify="right")
    figures = dict.fromkeys(figure for arm in ours.values() for figure in (*arm.to_envelope, *arm.to_default))
    for figure in figures:
        cells = [_ratio(of.get(figure)) for arm in ours.values() for of in (arm.to_envelope, arm.to_default)]
        table.add_row(figure, load.envelope.get(figure, ""), *cells)
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
        "seconds. An arm in brackets is not viable.",
        f"strict: runs with every gap within {record.tbt_s / step:g} steps. attained: runs with TTFT within "
        f"{record.ttft_s / step:g} steps and a mean gap within {record.tbt_s / step:g}.",
        f"{settings['seeds']} repetitions of {settings['runs']} runs; inputs: {settings['inputs']}; arrivals: "
        f"{settings['arrivals']}; overlap: {record.machine['overlap']}.",
    ]


def _steps(gaps: Gaps | None, figure: str, step: float) -> str:
    return "" if gaps is None else f"{getattr(gaps, figure) / step:.2f}"


def _ratio(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{ratio.value:.2f} [{ratio.low:.2f}-{ratio.high:.2f}]"
