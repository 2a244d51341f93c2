"""`page`: a report as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from sglang_ext.bench.attainment import Attainment
from sglang_ext.bench.envelope import FIGURES
from sglang_ext.bench.load_result import DEFAULT, ArmFigures, LoadResult
from sglang_ext.bench.report.figure_names import BASELINES, READING, READING_ENGINE, value_of
from sglang_ext.bench.report.plots import forest, legend_mark, over_load, percentile_legend, percentiles, shares
from sglang_ext.bench.report.report import Report, Section, Series
from sglang_ext.bench.report.shortcomings import shortcomings
from sglang_ext.bench.report.tables import (
    Table,
    all_table,
    envelope_table,
    glance_table,
    in_order,
    main_table,
    other_table,
    parts_table,
    ratio_table,
)

# Lines in one plot that can be told apart.
MOST_LINES = 6
_PARTS_FIGURES = ("gap P95", "gap P99", "switch P95", "worst P95", "completion P95")
_OVER_LOAD = ("gap mean", "gap P95", "gap P99", "switch P95", "worst P95", "TTFT P95", "completion P95")

_OVER_LOAD_ABOUT = "Gaps and times, and the rates, stand on axes by factors."


@dataclass(frozen=True, slots=True)
class Plot:
    """Args: key: marks with their meaning."""

    title: str
    svg: str
    about: str = ""
    key: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A table with its plot, where it has one. Args: folded: its title alone is seen at first."""

    title: str
    table: Table
    plot: Plot | None = None
    folded: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A section of the page: its first table, plots, and what else there is."""

    title: str
    note: str = ""
    table: Table | None = None
    plots: Sequence[Plot] = ()
    blocks: Sequence[Block] = ()


def page(report: Report) -> str:
    """The HTML. All names are escaped; nothing is loaded from elsewhere."""
    data = files("sglang_ext.bench.report") / "data"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((data / "page.html.jinja").read_text(encoding="utf-8"))
    measured = any(arm.engine for section in report.sections for arm in section.result.arms.values())
    return template.render(
        report=report,
        style=(data / "page.css").read_text(encoding="utf-8"),
        views=[_section(section, report) for section in report.sections],
        series=[_series(series, report) for series in report.series],
        glance=_glance(report),
        engines=any(arm.settings for arm in report.arms.values()),
        short=shortcomings(report),
        marks={True: "met", False: "missed", None: "open"},
        reading=[*READING, *(READING_ENGINE if measured else ())],
    )


def _glance(report: Report) -> Table | None:
    """None where there is no stock to compare with."""
    arms: dict[str, ArmFigures] = {}
    for section in report.sections:
        own = {name: arm for name, arm in section.whole.items() if arm.ratios}
        arms |= {section.title if len(own) == 1 else f"{section.title}: {name}": arm for name, arm in own.items()}
    return glance_table(arms) if arms else None


def _section(section: Section, report: Report) -> View:
    arms, step_s = in_order(section.result), report.step_s
    own = {name: arm for name, arm in arms.items() if arm.ratios}
    if section.parts:
        blocks = [_parts(own)] if len(own) > 1 else []
    else:
        blocks = [_against_stock(name, arm, folded=place > 0) for place, (name, arm) in enumerate(own.items())]
    if section.result.baselines:
        envelope = envelope_table(section.result, step_s)
        blocks.append(Block("The best stock setting of each figure (the envelope)", envelope, folded=True))
    other = "Steps, cache, limits" + (", engines" if _measured(arms) else "")
    blocks += [
        Block("Every quantity", all_table(arms, step_s), folded=True),
        Block(other, other_table(arms, step_s), folded=True),
    ]
    return View(section.title, section.note, main_table(arms, step_s), _gap_plots(arms, report), blocks)


def _against_stock(name: str, arm: ArmFigures, folded: bool) -> Block:
    panels = {BASELINES[by]: found for by, found in arm.ratios.items()}
    about = "Left of 1 is better. Full: the whole interval is on one side of 1. Hollow: no difference was seen."
    plot = Plot("", forest(panels, f"Ratios of {name} to stock"), about)
    return Block(f"{name} against stock: ratio, 95% interval", ratio_table(arm), plot, folded)


def _parts(own: Mapping[str, ArmFigures]) -> Block:
    """Arms without a part beside the whole, each against stock's default."""
    found = {name: arm.ratios.get("default", {}) for name, arm in own.items()}
    panels = {
        figure: {name: ratios[figure] for name, ratios in found.items() if figure in ratios}
        for figure in _PARTS_FIGURES
        if any(figure in ratios for ratios in found.values())
    }
    about = "Compare the rows: a part is worth the way from its row to that of the whole."
    plot = Plot("", forest(panels, "Ratios of Grape without parts to stock's default"), about) if panels else None
    return Block(f"Against {BASELINES['default']}: ratio, 95% interval", parts_table(own, "default"), plot)


def _measured(arms: Mapping[str, ArmFigures]) -> bool:
    return any(arm.engine is not None for arm in arms.values())


def _gap_plots(arms: Mapping[str, ArmFigures], report: Report) -> list[Plot]:
    found = []
    for of, title, about in (
        ("line", "Gaps between tokens", "The tall line on an arm of Grape is the P95 of the fluid limit of its steps."),
        ("switch", "Gaps at a task switch", ""),
        ("worst", "Worst gap of each run", ""),
    ):
        svg = percentiles(arms, of, report.step_s, report.tbt_s, title)
        if svg is not None:
            found.append(Plot(title, svg, about, percentile_legend()))
    strict = {name: arm.figures.strict for name, arm in arms.items()}
    kept = {name: arm.figures.attained[Attainment.MEAN] for name, arm in arms.items()}
    level = f"{report.tbt_s / report.step_s:g} u"
    found.append(Plot(f"Runs with every gap within {level} (strict)", shares(arms, strict, "Strict attainment")))
    found.append(Plot("Runs that attained both service levels", shares(arms, kept, "Attainment")))
    return found


def _series(series: Series, report: Report) -> View:
    names = _lines(series.results)
    key = [(legend_mark(place), name) for place, name in enumerate(names)]
    plots = []
    for figure in _OVER_LOAD:
        seconds = FIGURES[figure].of == "completion"
        lines = {}
        for name in names:
            values = [value_of(result.arms[name], figure) for result in series.results]
            lines[name] = [(v or 0.0) / (1.0 if seconds else report.step_s) for v in values]
        if any(any(values) for values in lines.values()):
            unit = "s" if seconds else "u"
            plots.append(Plot(f"{figure}, {unit}", over_load(series.results, lines, f"{figure} over load", unit)))
    getters: Sequence[tuple[str, Callable[[ArmFigures], float]]] = (
        ("strict", lambda arm: arm.figures.strict),
        ("attained", lambda arm: arm.figures.attained[Attainment.MEAN]),
    )
    for title, share in getters:
        lines = {name: [share(result.arms[name]) for result in series.results] for name in names}
        plots.append(Plot(title, over_load(series.results, lines, f"{title} over load", "%")))
    return View(f"{series.title} over load", plots=[Plot("", "", _OVER_LOAD_ABOUT, key), *plots])


def _lines(results: Sequence[LoadResult]) -> list[str]:
    """Arms that are there at every load: Grape's, stock's default, and those that are the best of most figures."""
    common = [name for name in results[0].arms if all(name in result.arms for result in results)]
    won = [best for result in results for best in result.baselines.get("envelope", {}).values()]
    own = [name for name in common if not results[0].arms[name].stock]
    stock = sorted((n for n in common if n in won and n != DEFAULT), key=lambda name: -won.count(name))
    return [*own, *(n for n in common if n == DEFAULT), *stock][:MOST_LINES]
