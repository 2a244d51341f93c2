"""The record of `grape bench engine --profile`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.bench.machine import Machine
from sglang_ext.bench.step_profile import StepProfile

KIND: Literal["grape.bench.engine.profile/1"] = "grape.bench.engine.profile/1"


class ProfileRecord(BaseModel):
    """Args: context: tokens of each sequence's prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["grape.bench.engine.profile/1"] = KIND
    machine: Machine
    versions: dict[str, str]
    model: str
    dtype: str
    threads: int
    context: int
    engine: EngineRecord
    profiles: list[StepProfile]
