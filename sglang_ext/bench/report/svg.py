"""Plain SVG: elements with escaped text, and an axis that turns values into places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

# Pixels per character of the page's font at 12 px, the wider ones of it.
CHARACTER = 7.5
_STEPS = (1, 2, 5)
_SHAPES = ("circle", "square", "diamond", "triangle", "cross")


@dataclass
class Canvas:
    """Shapes in pixels from the upper left corner.

    Args:
        label: what the plot shows, for those who do not see it.
    """

    width: float
    height: float
    label: str
    _parts: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{places}" class="{kind}"/>')

    def bar(self, x: float, y: float, width: float, height: float, kind: str, tip: str) -> None:
        place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect {place} class="{kind}">{_tip(tip)}</rect>')

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self._parts.append(f'<text {place} class="{kind}">{escape(text)}</text>')

    def mark(self, x: float, y: float, number: int, kind: str, tip: str, size: float = 4.5) -> None:
        """A point. Args: number: chooses its shape, so that colour is not all that tells points apart."""
        shape, s = _SHAPES[number % len(_SHAPES)], size
        if shape == "circle":
            self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{s}" class="{kind}">{_tip(tip)}</circle>')
            return
        corners = {
            "square": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
            "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
            "triangle": ((0, -1.2), (1.15, 0.95), (-1.15, 0.95)),
            "cross": ((-0.25, -1.1), (0.25, -1.1), (0.25, 1.1), (-0.25, 1.1)),
        }[shape]
        places = " ".join(f"{x + dx * s:.1f},{y + dy * s:.1f}" for dx, dy in corners)
        self._parts.append(f'<polygon points="{places}" class="{kind}">{_tip(tip)}</polygon>')

    def svg(self) -> str:
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        return f'<svg {size} role="img" aria-label="{escape(self.label)}">{"".join(self._parts)}</svg>'


@dataclass(frozen=True, slots=True)
class Axis:
    """Args:
    low, high: values at its ends. start, end: their places in pixels.
    log: by factors; needs values above 0.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float, log: bool = False) -> Axis:
        """An axis on which all of `values` have room; by factors it leaves out those that are not above 0."""
        if log:
            above = [value for value in values if value > 0] or [1.0]
            return cls(min(above) / 1.12, max(above) * 1.12, start, end, True)
        top = max([*values, 0.0]) or 1.0
        return cls(0.0, top * 1.05, start, end)

    def at(self, value: float) -> float:
        """The place of a value; one outside is put at the nearer end."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 7) -> list[float]:
        """Round values on it, at most so many."""
        found = self._round(_STEPS) if self.log else self._even(most)
        if self.log and len(found) > most:
            found = self._round((1, 3))
        if self.log and len(found) > most:
            found = self._round((1,))
        # Under a factor of two or three no power is inside.
        return found if len(found) > 1 else self._even(min(most, 4))

    def _round(self, steps: Sequence[int]) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [v for power in powers for step in steps if self.low <= (v := step * 10.0**power) <= self.high]

    def _even(self, most: int) -> list[float]:
        least = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(least))
        step = next(s * power for s in (1, 2, 5, 10) if s * power >= least)
        first = math.ceil(self.low / step)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """A tick's text."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""
