"""A latency bound as settings and options give it: `250ms`, `1.5s`, or `3x`, in unloaded decode steps."""

from __future__ import annotations

import math

UNITS = (("ms", "seconds", 1e-3), ("s", "seconds", 1.0), ("x", "steps", 1.0))


def read_bound(text: str) -> dict[str, float] | None:
    """`{"seconds": s}` or `{"steps": n}`; None for an empty text. Raises ValueError for anything else."""
    if not text:
        return None
    for unit, name, factor in UNITS:
        if not text.endswith(unit):
            continue
        try:
            value = float(text.removesuffix(unit)) * factor
        except ValueError:
            break
        if 0 < value < math.inf:
            return {name: value}
        break
    raise ValueError("a latency is a positive number with a unit, such as 250ms, 1.5s or 3x (decode steps)")
