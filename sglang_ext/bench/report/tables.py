"""The tables of the page, as text cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sglang_ext.bench.attainment import Attainment
from sglang_ext.bench.envelope import FIGURES
from sglang_ext.bench.load_result import DEFAULT, ArmFigures, LoadResult
from sglang_ext.bench.report.figure_names import BASELINES, QUANTITIES, in_seconds, side, value_of
from sglang_ext.bench.run_figures import Gaps
from sglang_ext.bench.spread import Ratio

# Where an arm has no such figure.
_NONE = "-"
_GLANCE = ("gap mean", "gap P95", "switch P95", "worst P95", "TTFT P95", "completion P95")
_GLANCE_BY = ("envelope", "default")
_POINTS = (("mean", "mean"), ("p50", "P50"), ("p95", "P95"), ("p99", "P99"), ("most", "largest"))


@dataclass(frozen=True, slots=True)
class Cell:
    """Args: note: smaller, below. kind: `best`, a `Side` of a ratio, or nothing."""

    text: str
    note: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Args: kind: `own`, `stock` or `unfit`."""

    name: str
    cells: Sequence[Cell]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Args: groups: heads over several columns, each with their number; those of `columns` in all."""

    corner: str
    columns: Sequence[str]
    rows: Sequence[Row]
    groups: Sequence[tuple[str, int]] = ()


def in_order(result: LoadResult) -> dict[str, ArmFigures]:
    """Grape first, then stock's default, then the other viable ones."""
    arms = result.arms
    return {name: arms[name] for name in sorted(arms, key=lambda n: (arms[n].stock, n != DEFAULT, not arms[n].viable))}


def kind_of(arm: ArmFigures) -> str:
    if not arm.viable:
        return "unfit"
    return "stock" if arm.stock else "own"


def main_table(arms: Mapping[str, ArmFigures], step_s: float) -> Table:
    """What arms are compared by. In each column the best value of the viable arms stands out, with those
    that are printed alike.
    """
    names = list(FIGURES)
    best = {
        name: min((v for arm in arms.values() if arm.viable and (v := value_of(arm, name)) is not None), default=None)
        for name in names
    }
    rows = []
    for arm_name, arm in arms.items():
        cells = [Cell("yes" if arm.viable else "no")]
        for name in names:
            value = value_of(arm, name)
            if value is None:
                cells.append(Cell(_NONE))
                continue
            unit = 1.0 if in_seconds(name) else step_s
            text, least = f"{value / unit:.2f}", best[name]
            leads = arm.viable and least is not None and text == f"{least / unit:.2f}"
            cells.append(Cell(text, kind="best" if leads else ""))
        cells += [
            Cell(f"{arm.figures.strict:.0%}"),
            Cell(f"{arm.figures.attained[Attainment.MEAN]:.0%}"),
            Cell(f"{arm.figures.tokens_per_s:,.1f}"),
        ]
        rows.append(Row(arm_name, cells, kind_of(arm)))
    return Table(
        "arm",
        ["viable", *(name.split()[-1] for name in names), "strict", "attained", "tokens/s"],
        rows,
        [("", 1), *_heads(names), ("runs", 2), ("", 1)],
    )


def _heads(names: Sequence[str]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for name in names:
        what = name.rsplit(" ", 1)[0] + (", s" if in_seconds(name) else ", u")
        if found and found[-1][0] == what:
            found[-1] = (what, found[-1][1] + 1)
        else:
            found.append((what, 1))
    return found


def envelope_table(result: LoadResult, step_s: float) -> Table:
    """Which stock arm is the best of each figure, and its value."""
    rows = []
    for figure in FIGURES:
        cells = []
        for best in result.baselines.values():
            arm = best.get(figure)
            value = None if arm is None else value_of(result.arms[arm], figure)
            if arm is None or value is None:
                cells.append(Cell(_NONE))
            else:
                cells.append(Cell(f"{value:.2f} s" if in_seconds(figure) else f"{value / step_s:.2f} u", arm))
        rows.append(Row(figure, cells))
    return Table("figure", [BASELINES[name] for name in result.baselines], rows)


def ratio_table(arm: ArmFigures) -> Table:
    """An arm against each baseline, figure by figure."""
    rows = [
        Row(figure, [_ratio(found.get(figure)) for found in arm.ratios.values()])
        for figure in FIGURES
        if any(figure in found for found in arm.ratios.values())
    ]
    return Table("figure", [BASELINES[name] for name in arm.ratios], rows)


def glance_table(arms: Mapping[str, ArmFigures]) -> Table:
    """Arms at their loads, against the best stock setting of each figure and stock's default, in the main figures."""
    rows = []
    for name, arm in arms.items():
        for by in _GLANCE_BY:
            ratios = [arm.ratios.get(by, {}).get(figure) for figure in _GLANCE]
            rows.append(Row(name, [Cell(BASELINES[by]), *map(_ratio, ratios)]))
    return Table("load", ["against", *_GLANCE], rows)


def parts_table(arms: Mapping[str, ArmFigures], baseline: str) -> Table:
    """Several arms against one baseline."""
    own = {name: arm.ratios[baseline] for name, arm in arms.items() if baseline in arm.ratios}
    figures = [figure for figure in FIGURES if any(figure in found for found in own.values())]
    rows = [Row(name, [_ratio(found.get(f)) for f in figures], kind_of(arms[name])) for name, found in own.items()]
    return Table("arm", figures, rows)


def _ratio(ratio: Ratio | None) -> Cell:
    if ratio is None:
        return Cell(_NONE)
    return Cell(f"{ratio.value:.2f}", f"{ratio.low:.2f} to {ratio.high:.2f}", side(ratio))


def all_table(arms: Mapping[str, ArmFigures], step_s: float) -> Table:
    """Every quantity with all its points; of completion in seconds, of the others in unloaded steps."""
    rows = []
    for name, arm in arms.items():
        cells = []
        for quantity in QUANTITIES:
            gaps: Gaps | None = getattr(arm.figures, quantity)
            unit = 1.0 if quantity == "completion" else step_s
            cells += [Cell(_NONE if gaps is None else f"{getattr(gaps, point) / unit:.2f}") for point, _ in _POINTS]
        rows.append(Row(name, cells, kind_of(arm)))
    return Table(
        "arm",
        [text for _ in QUANTITIES for _, text in _POINTS],
        rows,
        [(f"{text}, {'s' if name == 'completion' else 'u'}", len(_POINTS)) for name, text in QUANTITIES.items()],
    )


def other_table(arms: Mapping[str, ArmFigures], step_s: float) -> Table:
    """What the arms did and how far it was from the limits; what only an engine has where there was one."""
    columns = ["runs", "attained, mean", "attained, P90", "goodput, runs/s", "steps", "rows", "interference"]
    columns += ["prefill computed", "KV at most", "fluid mean, u", "fluid P50, u", "fluid P95, u", "fluid P99, u"]
    columns += ["gap P95 / fluid"]
    measured = any(arm.engine is not None for arm in arms.values())
    if measured:
        columns += [
            "forming",
            "matrix rate",
            "again",
            "late P50, ms",
            "late P99, ms",
            "client",
            "others",
            "same output",
        ]
    rows = []
    for name, arm in arms.items():
        f, fluid, engine = arm.figures, arm.fluid, arm.engine
        cells = [
            f"{f.runs:,}",
            f"{f.attained[Attainment.MEAN]:.0%}",
            f"{f.attained[Attainment.P90]:.0%}",
            f"{f.goodput:.3g}",
            f"{arm.steps:,}",
            f"{arm.rows:.2f}",
            f"{arm.interference:.1%}",
            f"{arm.computed_share:.0%}",
            f"{arm.kv_high:.0%}",
        ]
        if fluid is None:
            cells += [_NONE] * 5
        else:
            cells += [f"{v / step_s:.2f}" for v in (fluid.mean, fluid.p50, fluid.p95, fluid.p99)]
            cells += [_NONE if f.line is None else f"{f.line.p95 / fluid.p95:.2f}"]
        if engine is not None:
            cells += [f"{engine.plan_share:.2%}", f"{engine.matrix_share:.1%}", f"{engine.again_share:.1%}"]
            cells += [f"{engine.late.p50 * 1000:.1f}", f"{engine.late.p99 * 1000:.1f}", f"{engine.client_share:.0%}"]
            cells += [_NONE if engine.others is None else f"{engine.others:.2f}"]
            cells += [_NONE if engine.same_output is None else f"{engine.same_output:.0%}"]
        elif measured:
            cells += [_NONE] * 8
        rows.append(Row(name, [Cell(cell) for cell in cells], kind_of(arm)))
    return Table("arm", columns, rows)
