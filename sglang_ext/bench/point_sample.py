"""One measurement of one point with one arm."""

from __future__ import annotations

from typing import Protocol

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.point import Point

# Steps that one sample is the median of: those of a decode batch, and those with a short piece of a prompt.
DECODE_STEPS, PROBES = 6, 2
# A prefill of more tokens is measured once per sample.
SHORT = 128


class PointSample(BaseModel):
    """Args:
    seconds: of the step, the passes or the load; the median where the run had several such steps.
    alone_s: of a mixed step's decode batch without the prefill, in the same run; else None.
    steps: how many steps `seconds` is the median of.
    """

    model_config = ConfigDict(frozen=True)

    seconds: float
    alone_s: float | None = None
    steps: int = 1


class PointArm(Protocol):
    """Something whose speed is measured. What it must have in its caches, it puts there when it first needs it."""

    @property
    def name(self) -> str: ...

    def takes(self, point: Point) -> bool:
        """Whether it is measured there."""

    async def measure(self, point: Point) -> PointSample:
        """Raises EngineError if it cannot be measured."""
