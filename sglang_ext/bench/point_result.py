"""One point, measured with every arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.point import Point
from sglang_ext.bench.point_sample import PointSample
from sglang_ext.bench.spread import Ratio, Spread


class Timing(Spread):
    """The median of some samples, the quartiles and the ends."""

    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Timing:
        spread = Spread.of(values)
        return cls(**spread.model_dump(), least=min(values), most=max(values))


class PointArmResult(BaseModel):
    """One arm at one point.

    Args:
        seconds: of the step, the passes or the load.
        tokens_per_s: at the median.
        mixed_ratio: of a mixed step to its decode batch alone, in the same runs; None where nothing is mixed.
        speed: against the point's baseline, above 1 is faster; None without a baseline.
        limit_share: of the speed that the machine's limits allow; 1 is the most that can be had.
        samples: in the order of the repetitions.
    """

    model_config = ConfigDict(frozen=True)

    seconds: Timing
    tokens_per_s: float
    mixed_ratio: Ratio | None
    speed: Ratio | None
    limit_share: float
    samples: list[PointSample]


class PointResult(BaseModel):
    """Args:
    kind, label: of the point.
    shape: its sizes.
    tokens: those that `tokens_per_s` counts.
    limit_s: the least time at the machine's limits.
    baseline: the arm of transformers with the smaller median; None where none was measured.
    """

    model_config = ConfigDict(frozen=True)

    kind: str
    label: str
    shape: dict[str, int]
    tokens: int
    limit_s: float
    baseline: str | None
    arms: dict[str, PointArmResult]


def summarise(
    point: Point, samples: Mapping[str, Sequence[PointSample]], limit_s: float, baselines: Sequence[str]
) -> PointResult:
    """The figures of a point.

    Args:
        samples: by arm, equal places measured one after the other.
        limit_s: the least time that the point can take.
        baselines: the arms that the others are compared with, of which the better one counts.
    """
    seconds = {arm: [sample.seconds for sample in own] for arm, own in samples.items()}
    known = [arm for arm in baselines if arm in seconds]
    baseline = min(known, key=lambda arm: median(seconds[arm]), default=None)
    return PointResult(
        kind=type(point).__name__.lower(),
        label=point.label,
        shape=asdict(point),
        tokens=point.tokens_out,
        limit_s=limit_s,
        baseline=baseline,
        arms={
            arm: PointArmResult(
                seconds=Timing.of(seconds[arm]),
                tokens_per_s=point.tokens_out / median(seconds[arm]),
                mixed_ratio=_mixed(own),
                speed=Ratio.of(seconds[baseline], seconds[arm]) if baseline else None,
                limit_share=limit_s / median(seconds[arm]),
                samples=list(own),
            )
            for arm, own in samples.items()
        },
    )


def _mixed(samples: Sequence[PointSample]) -> Ratio | None:
    alone = [sample.alone_s for sample in samples if sample.alone_s is not None]
    return Ratio.of([sample.seconds for sample in samples], alone) if alone else None
