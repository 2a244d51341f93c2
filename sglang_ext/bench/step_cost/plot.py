"""A profile as a drawing: a step's time over its tokens and over the KV that it reads, measured and modelled. SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.profile.profile import Measurement, Profile

_COLOURS = {0: "#1b6ca8", 1: "#2a9d5c", 4: "#c98b00", 16: "#c0392b"}
"""Of steps with at least so many sequences that decode."""
_LEFT, _TOP, _WIDTH, _HEIGHT, _GAP = 60, 64, 430, 330, 90
_POINTS = 60


@dataclass(frozen=True, slots=True)
class _Scale:
    """A logarithmic axis from `low` to `high`, on pixels from `begin` to `end`."""

    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def of(cls, values: Sequence[float], begin: float, end: float) -> _Scale:
        low, high = min(values), max(values)
        return cls(low, max(high, 2 * low), begin, end)

    def at(self, value: float) -> float:
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.begin + min(1.0, share) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [t for p in powers for t in (10.0**p, 2 * 10.0**p, 5 * 10.0**p) if self.low <= t <= self.high]

    def steps(self) -> list[float]:
        return [self.low * (self.high / self.low) ** (i / _POINTS) for i in range(_POINTS + 1)]


def draw(profile: Profile) -> str:
    """The drawing; it needs nothing from elsewhere."""
    key, found = profile.key, profile.measurements
    seconds = [1e3 * median(each.seconds) for each in found]
    y = _Scale.of(seconds, _TOP + _HEIGHT, _TOP)
    width = 2 * (_LEFT + _WIDTH) + _GAP // 2
    error = "" if profile.error is None else f", mean error {profile.error:.1%} on steps that the fit has not seen"
    title = f"{key.model}, {key.dtype}, {key.processor}, {key.threads} threads: {len(found)} make-ups of a step{error}"
    context = median([each.context / each.rows for each in found if each.rows] or [0])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_TOP + _HEIGHT + 56}" width="{width}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>',
        *_legend(),
        *_panel(
            f"tokens in the step; lines: {context:,.0f} tokens of context per sequence",
            _LEFT,
            y,
            [(each.rows + sum(tokens for _, tokens in each.pieces), each) for each in found],
            lambda rows, at: Load(rows, kv=round(rows * context)).plus(0, round(at) - rows),
            profile.cost,
            lambda load: load.rows + load.tokens,
        ),
        *_panel(
            "tokens of KV that the step reads; steps without prefill",
            _LEFT + _WIDTH + _GAP,
            y,
            [(each.load.kv, each) for each in found if not each.pieces],
            lambda rows, at: Load(rows, kv=round(at)),
            profile.cost,
            lambda load: load.kv,
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend() -> list[str]:
    names = [*_COLOURS]
    parts = []
    for i, rows in enumerate(names):
        upto = f" to {names[i + 1] - 1}" if i + 1 < len(names) and names[i + 1] - 1 > rows else ""
        more = " or more" if i + 1 == len(names) else ""
        x = _LEFT + 150 * i
        parts.append(f'<circle cx="{x + 4}" cy="40" r="4" fill="{_COLOURS[rows]}"/>')
        parts.append(f'<text x="{x + 14}" y="44">{rows}{upto}{more} decoding</text>')
    return parts


def _panel(
    label: str,
    left: float,
    y: _Scale,
    points: Sequence[tuple[float, Measurement]],
    load_at: Callable[[int, float], Load],
    cost: CostModel,
    size: Callable[[Load], float],
) -> list[str]:
    """Args: load_at: the load of a line's sequences at a place of the axis. size: its place, as it is then."""
    bottom = _TOP + _HEIGHT
    parts = [f'<rect x="{left}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#888"/>']
    parts.append(f'<text x="{left + _WIDTH / 2}" y="{bottom + 40}" text-anchor="middle">{escape(label)}</text>')
    for tick in y.ticks():
        parts.append(
            f'<line x1="{left}" x2="{left + _WIDTH}" y1="{y.at(tick):.1f}" y2="{y.at(tick):.1f}" stroke="#eee"/>'
        )
        parts.append(f'<text x="{left - 6}" y="{y.at(tick) + 4:.1f}" text-anchor="end">{tick:g} ms</text>')
    if not points:
        return parts
    x = _Scale.of([max(1.0, place) for place, _ in points], left, left + _WIDTH)
    for tick in x.ticks():
        parts.append(f'<text x="{x.at(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{tick:,g}</text>')
    for place, each in points:
        colour = _COLOURS[max(rows for rows in _COLOURS if rows <= each.rows)]
        at = f'cx="{x.at(place):.1f}" cy="{y.at(1e3 * median(each.seconds)):.1f}"'
        parts.append(f'<circle {at} r="2.5" fill="{colour}" fill-opacity="0.5"/>')
    for rows, colour in _COLOURS.items():
        loads = [load for at in x.steps() if size(load := load_at(rows, at)) >= max(1, rows)]
        line = " ".join(f"{x.at(size(load)):.1f},{y.at(1e3 * cost.time(load)):.1f}" for load in loads)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return parts
