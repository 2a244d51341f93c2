"""The measurement of the points: every point with every arm, in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sglang_ext.bench.machine_limits import LimitProbe, MachineLimits
from sglang_ext.bench.point import Point
from sglang_ext.bench.point_sample import PointArm, PointSample

# Between two arms, so that the threads of the last one have come to rest.
_REST_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    """Args: samples: by point and arm. limits: of each repetition."""

    samples: Mapping[Point, Mapping[str, list[PointSample]]]
    limits: list[MachineLimits]


class PointMeasurement:
    """Measures one point with one arm at a time, so that no arm shares the machine with another.

    Args:
        advance: called with what was done after each measurement.
    """

    def __init__(
        self,
        arms: Sequence[PointArm],
        probe: LimitProbe,
        points: Sequence[Point],
        repetitions: int,
        advance: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._arms = arms
        self._probe = probe
        self._points = points
        self._repetitions = repetitions
        self._advance = advance

    @property
    def turns(self) -> int:
        """How many measurements there are in all, those that warm up included."""
        return sum(len(self._taking(point)) for point in self._points) * (1 + self._repetitions)

    async def run(self) -> Measured:
        """Raises EngineError."""
        # Code for a shape is generated, caches are filled and buffers grow when a point is first met.
        for point in self._points:
            for arm in self._taking(point):
                await self._measure(arm, point, "warming up")
        samples: dict[Point, dict[str, list[PointSample]]] = {
            point: {arm.name: [] for arm in self._taking(point)} for point in self._points
        }
        limits = []
        for repetition in range(self._repetitions):
            limits.append(self._probe.measure())
            # Another arm comes first each time, so that none profits from its place.
            for point in self._points:
                arms = self._taking(point)
                first = repetition % len(arms)
                for arm in (*arms[first:], *arms[:first]):
                    sample = await self._measure(arm, point, f"repetition {repetition + 1}")
                    samples[point][arm.name].append(sample)
        return Measured(samples, limits)

    def _taking(self, point: Point) -> list[PointArm]:
        return [arm for arm in self._arms if arm.takes(point)]

    async def _measure(self, arm: PointArm, point: Point, when: str) -> PointSample:
        sample = await arm.measure(point)
        self._advance(f"{when}, {point.label}, {arm.name}")
        await asyncio.sleep(_REST_SECONDS)
        return sample
