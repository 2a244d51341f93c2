"""What the CPU platform is meant to reach, and whether the numbers do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.engine_arms import PLATFORM
from sglang_ext.bench.point import Decode, Mixed, Point, Prefill
from sglang_ext.bench.point_result import PointResult

Results = Mapping[Point, PointResult]


class Goal(BaseModel):
    """Args:
    wanted: the bound on `found`.
    at_most: the bound is an upper one.
    found: None where the run did not measure what it is about.
    """

    model_config = ConfigDict(frozen=True)

    goal: str
    wanted: float
    at_most: bool
    found: float | None

    @property
    def reached(self) -> bool | None:
        if self.found is None:
            return None
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted


@dataclass(frozen=True, slots=True)
class _Target:
    goal: str
    wanted: float
    find: Callable[[Results], float | None]
    at_most: bool = False


def judge(results: Results) -> list[Goal]:
    """All goals, in the platform's own numbers."""
    return [
        Goal(goal=target.goal, wanted=target.wanted, at_most=target.at_most, found=_found(target, results))
        for target in _TARGETS
    ]


def _found(target: _Target, results: Results) -> float | None:
    try:
        return target.find(results)
    except KeyError:  # a point or an arm that this run left out
        return None


def _speed(point: Point) -> Callable[[Results], float | None]:
    def find(results: Results) -> float | None:
        speed = results[point].arms[PLATFORM].speed
        return None if speed is None else speed.value

    return find


def _share(point: Point) -> Callable[[Results], float | None]:
    return lambda results: results[point].arms[PLATFORM].limit_share


def _throughput(point: Point, single: Point) -> Callable[[Results], float | None]:
    def find(results: Results) -> float | None:
        baseline = results[single].baseline
        if baseline is None:
            return None
        return results[point].arms[PLATFORM].tokens_per_s / results[single].arms[baseline].tokens_per_s

    return find


def _cost(point: Point, cheaper: Point) -> Callable[[Results], float | None]:
    def find(results: Results) -> float | None:
        return results[point].arms[PLATFORM].seconds.median / results[cheaper].arms[PLATFORM].seconds.median

    return find


def _mixed(point: Mixed) -> Callable[[Results], float | None]:
    def find(results: Results) -> float | None:
        ratio = results[point].arms[PLATFORM].mixed_ratio
        return None if ratio is None else ratio.value

    return find


def _mixed_target(batch: int, tokens: int, wanted: float) -> _Target:
    goal = f"decode batch {batch} with {tokens} prefill tokens behind 512, against the batch alone"
    return _Target(goal, wanted, _mixed(Mixed(batch, tokens)), at_most=True)


_TARGETS = (
    _Target("decode, batch 1, against transformers", 1.6, _speed(Decode(1))),
    _Target("decode tokens/s, batch 16, against transformers' batch 1", 10.0, _throughput(Decode(16), Decode(1))),
    _Target("decode tokens/s, batch 16, against transformers' batch 16", 1.5, _speed(Decode(16))),
    _Target("decode, batch 1, share of the read-bandwidth limit", 0.3, _share(Decode(1))),
    _Target("prefill of 512 tokens, against transformers", 1.1, _speed(Prefill(512))),
    _Target(
        "chunk of 16 behind 2,048, against behind 64", 1.9, _cost(Prefill(16, 2048), Prefill(16, 64)), at_most=True
    ),
    _mixed_target(8, 16, 1.35),
    _mixed_target(1, 8, 1.2),
    _mixed_target(1, 16, 1.4),
    _mixed_target(1, 32, 1.8),
)
