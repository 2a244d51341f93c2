"""The record of `grape bench simulate`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.load_result import LoadResult

KIND: Literal["grape.bench.simulate/1"] = "grape.bench.simulate/1"


class SimulationRecord(BaseModel):
    """Args:
    simulated: always true: no figure here was measured on an engine.
    machine: its settings and cost model. unloaded_s: u, the unloaded decode step.
    ttft_s, tbt_s: the service levels.
    settings: what the jobs were made from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["grape.bench.simulate/1"] = KIND
    simulated: Literal[True] = True
    machine: dict[str, Any]
    unloaded_s: float
    ttft_s: float
    tbt_s: float
    settings: dict[str, Any]
    loads: list[LoadResult]
