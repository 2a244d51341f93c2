"""The plots of arms under load. Every one can be read without colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sglang_ext.bench.load_result import ArmFigures, LoadResult
from sglang_ext.bench.report.figure_names import side
from sglang_ext.bench.report.svg import CHARACTER, Axis, Canvas, number
from sglang_ext.bench.run_figures import Gaps
from sglang_ext.bench.spread import Ratio

_ROW, _TOP, _PLOT = 22.0, 34.0, 360.0
_POINTS = (("p50", "P50"), ("p95", "P95"), ("p99", "P99"), ("most", "largest"))
_SHAPE = {"p50": 1, "p95": 0, "p99": 2, "most": 4}


def left_of(names: Sequence[str]) -> float:
    """Pixels that the longest of some names needs."""
    return max(map(len, names)) * CHARACTER + 14


def percentiles(
    arms: Mapping[str, ArmFigures], of: str, step_s: float, level_s: float | None, label: str
) -> str | None:
    """P50, P95, P99 and the largest value of each arm in unloaded steps; None where no arm has any.

    Args:
        of: a field of `RunFigures` that holds `Gaps`.
        level_s: a service level, drawn as a line.
    """
    rows: dict[str, Gaps] = {name: gaps for name, arm in arms.items() if (gaps := getattr(arm.figures, of)) is not None}
    if not rows:
        return None
    left, bottom = left_of(list(rows)), _TOP + len(rows) * _ROW
    levels = [] if level_s is None else [level_s / step_s]
    values = [getattr(gaps, point) / step_s for gaps in rows.values() for point, _ in _POINTS]
    fluids = {
        name: arm.fluid.p95 / step_s
        for name, arm in arms.items()
        if of == "line" and not arm.stock and arm.fluid is not None
    }
    axis = Axis.around([*values, *levels, *fluids.values()], left, left + _PLOT, log=True)
    canvas = Canvas(left + _PLOT + 24, bottom + 44, label)
    _grid(canvas, axis, _TOP, bottom, "unloaded decode steps")
    for level in levels:
        canvas.line(axis.at(level), _TOP - 4, axis.at(level), bottom, "level")
        canvas.text(axis.at(level), _TOP - 8, f"service level {number(level)}", "small", "middle")
    for row, (name, gaps) in enumerate(rows.items()):
        kind, y = _kind(arms[name]), _TOP + (row + 0.5) * _ROW
        canvas.text(left - 8, y + 4, name, f"name {kind}", "end")
        canvas.line(axis.at(gaps.p50 / step_s), y, axis.at(gaps.most / step_s), y, f"range {kind}")
        for point, text in _POINTS:
            value = getattr(gaps, point) / step_s
            canvas.mark(axis.at(value), y, _SHAPE[point], f"mark {kind} {point}", f"{name}: {text} {value:.2f}")
        if name in fluids:
            canvas.line(axis.at(fluids[name]), y - 8, axis.at(fluids[name]), y + 8, "fluid")
    return canvas.svg()


def shares(arms: Mapping[str, ArmFigures], values: Mapping[str, float], label: str) -> str:
    """A bar from 0 to 100% for each arm, with its number."""
    left, bottom = left_of(list(values)), 10 + len(values) * _ROW
    axis = Axis(0, 1, left, left + _PLOT - 60)
    canvas = Canvas(left + _PLOT + 24, bottom + 30, label)
    for tick in (0, 0.25, 0.5, 0.75, 1):
        canvas.line(axis.at(tick), 8, axis.at(tick), bottom, "grid")
        canvas.text(axis.at(tick), bottom + 17, f"{tick:.0%}", "tick", "middle")
    for row, (name, value) in enumerate(values.items()):
        kind, y = _kind(arms[name]), 10 + (row + 0.5) * _ROW
        canvas.text(left - 8, y + 4, name, f"name {kind}", "end")
        canvas.bar(left, y - 6, axis.at(value) - left, 12, f"bar {kind}", f"{name}: {value:.1%}")
        canvas.text(axis.at(value) + 6, y + 4, f"{value:.0%}", "small")
    return canvas.svg()


def forest(panels: Mapping[str, Mapping[str, Ratio]], label: str) -> str:
    """Ratios with their intervals, a row per figure and a panel per baseline, on one axis by factors.

    Left of 1 is better. Intervals on one side of 1 are drawn full, the others hollow.
    """
    rows = list(dict.fromkeys(figure for found in panels.values() for figure in found))
    left, width, space = left_of(rows), 190.0, 26.0
    values = [v for found in panels.values() for r in found.values() for v in (r.value, r.low, r.high)]
    bottom = _TOP + len(rows) * _ROW
    canvas = Canvas(left + len(panels) * (width + space), bottom + 44, label)
    for place, (title, found) in enumerate(panels.items()):
        start = left + place * (width + space)
        axis = Axis.around([*values, 0.8, 1.25], start, start + width, log=True)
        _grid(canvas, axis, _TOP, bottom, "times the baseline", ticks=5)
        canvas.line(axis.at(1), _TOP - 4, axis.at(1), bottom, "level")
        canvas.text(start, 16, title, "panel")
        for row, figure in enumerate(rows):
            y = _TOP + (row + 0.5) * _ROW
            if place == 0:
                canvas.text(left - 8, y + 4, figure, "name", "end")
            if figure in found:
                _interval(canvas, axis, y, found[figure], f"{figure} against {title}")
    return canvas.svg()


def _interval(canvas: Canvas, axis: Axis, y: float, ratio: Ratio, what: str) -> None:
    kind = side(ratio)
    canvas.line(axis.at(ratio.low), y, axis.at(ratio.high), y, f"interval {kind}")
    tip = f"{what}: {ratio.value:.3f} [{ratio.low:.3f} to {ratio.high:.3f}]"
    canvas.mark(axis.at(ratio.value), y, 2 if kind == "worse" else 0, f"mark {kind}", tip)


def over_load(results: Sequence[LoadResult], lines: Mapping[str, Sequence[float]], label: str, unit: str) -> str:
    """One figure over the rate, a line per arm; shares from 0, others by factors.

    Args:
        results: their rates are the places on the axis.
        lines: by arm a value for each of `results`; the first is drawn stronger than the others.
    """
    rates = [result.rate or 0.0 for result in results]
    x_axis = Axis.around(rates, 52, 330, log=True)
    y_axis = Axis.around([v for values in lines.values() for v in values], 190, 14, log=unit != "%")
    canvas = Canvas(346, 236, label)
    for tick in y_axis.ticks(5):
        canvas.line(52, y_axis.at(tick), 330, y_axis.at(tick), "grid")
        canvas.text(46, y_axis.at(tick) + 4, f"{tick:.0%}" if unit == "%" else number(tick), "tick", "end")
    written = 0.0
    for result, rate in zip(results, rates, strict=True):
        x = x_axis.at(rate)
        canvas.line(x, 190, x, 194, "axis")
        if x - written < 36:
            continue
        written = x
        canvas.text(x, 208, number(rate), "tick", "middle")
        if result.load != number(rate):
            canvas.text(x, 221, result.load, "tick", "middle")
    canvas.line(52, 190, 330, 190, "axis")
    canvas.text(330, 234, "runs per second", "small", "end")
    for place, (name, values) in reversed(list(enumerate(lines.items()))):
        points = [(x_axis.at(rate), y_axis.at(value)) for rate, value in zip(rates, values, strict=True)]
        canvas.path(points, f"curve series{place}")
        for (x, y), value, rate in zip(points, values, rates, strict=True):
            text = f"{value:.1%}" if unit == "%" else f"{value:.2f} {unit}"
            canvas.mark(x, y, place, f"mark series{place}", f"{name} at {rate:g} runs/s: {text}", 4)
    return canvas.svg()


def legend_mark(place: int) -> str:
    """The line and the mark of an arm in `over_load`."""
    canvas = Canvas(34, 14, "")
    canvas.path([(1, 7), (33, 7)], f"curve series{place}")
    canvas.mark(17, 7, place, f"mark series{place}", "", 4)
    return canvas.svg()


def percentile_legend() -> list[tuple[str, str]]:
    """The marks of `percentiles` with what they mean."""
    found = []
    for point, text in _POINTS:
        canvas = Canvas(16, 14, text)
        canvas.mark(8, 7, _SHAPE[point], f"mark own {point}", "")
        found.append((canvas.svg(), text))
    return found


def _kind(arm: ArmFigures) -> str:
    if not arm.stock:
        return "own"
    return "stock" if arm.viable else "unfit"


def _grid(canvas: Canvas, axis: Axis, top: float, bottom: float, unit: str, ticks: int = 8) -> None:
    for tick in axis.ticks(ticks):
        canvas.line(axis.at(tick), top, axis.at(tick), bottom, "grid")
        canvas.text(axis.at(tick), bottom + 17, number(tick), "tick", "middle")
    canvas.text(axis.end, bottom + 36, unit, "small", "end")
