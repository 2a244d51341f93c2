"""The record of `grape bench engine`: everything that is needed to read it again."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.engine_goal import Goal
from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.bench.machine import Machine
from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.point_result import PointResult, Timing

KIND: Literal["grape.bench.engine/1"] = "grape.bench.engine/1"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LimitRecord(_Model):
    """Over the repetitions, of the best in each."""

    bytes_per_s: Timing
    flops: Timing


class EngineBenchRecord(_Model):
    """One run of the benchmark.

    Args:
        started: UTC, ISO 8601.
        seconds: how long the measurement took, warm-up included, without the engines' start.
        load: the machine's load average over a minute before the engines were started, and at the end.
        dtype, threads: of the engines, and of all arms.
    """

    kind: Literal["grape.bench.engine/1"] = KIND
    started: str
    seconds: float
    machine: Machine
    load: tuple[float, float]
    versions: dict[str, str]
    model: str
    size: ModelSize
    dtype: str
    threads: int
    repetitions: int
    engines: dict[str, EngineRecord]
    arms: dict[str, str]
    limits: LimitRecord
    points: list[PointResult]
    goals: list[Goal]
