"""The record of `grape bench workflows`: everything that is needed to read it again."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.gap_record import ArmRecord, EngineRecord
from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.machine import Machine
from sglang_ext.bench.simulation.machine import Overlap
from sglang_ext.bench.verdict import Verdict
from sglang_ext.bench.workflows.plan import ModeName

KIND: Literal["grape.bench.workflows/1"] = "grape.bench.workflows/1"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CalibrationRecord(_Model):
    """What was measured of stock SGLang's default before everything else.

    Args:
        unloaded_s: u, the unloaded decode step: the median of those of a run alone.
        cost: the coefficients of F, fitted to its steps.
        errors: mean relative error of F on steps that the fit did not see, by regime.
        steps: how many it was fitted to.
        matrix_flops: operations per second of a large matrix product on this machine.
        client_request_s, client_token_s: processor time of the plain client per request and per token, against a server
            that computes nothing.
        dtype, threads: of the engines. kv_tokens: of KV in all. chunk: tokens of prefill in a step at most.
        running: requests that may decode at once; records of before it was noted have the simulator's default.
        overlap: how their loop runs beside the steps.
    """

    unloaded_s: float
    cost: dict[str, float]
    errors: dict[str, float]
    steps: int
    matrix_flops: float
    client_request_s: float
    client_token_s: float
    dtype: str
    threads: int
    kv_tokens: int
    chunk: int
    running: int = 256
    overlap: Overlap


class WorkloadResult(_Model):
    """One workload.

    Args:
        screen: every stock setting once, at the load `knee`; None where they were not tried.
        kept: the stock arms that the screen left.
        loads: what the arms are compared by.
        ablations: Grape without one part or another, beside Grape and stock's default; None where not measured.
    """

    workload: str
    screen: LoadResult | None
    kept: list[str]
    loads: list[LoadResult]
    ablations: LoadResult | None = None


class WorkflowRecord(_Model):
    """One run of the benchmark; it may have been measured in several parts.

    Args:
        indicative: too short for a claim.
        started, seconds: UTC, ISO 8601, of the last part, and how long that took.
        load: the machine's load average over a minute before the engines were started, and at the end.
        clock: whose times those of the tokens are: the ends of the engine's steps, in every arm.
        settings: what the runs were made from and how often.
        ttft_s, tbt_s: the service levels.
        unfinished: cells that were planned and not measured.
    """

    kind: Literal["grape.bench.workflows/1"] = KIND
    mode: ModeName
    indicative: bool
    started: str
    seconds: float
    machine: Machine
    load: tuple[float, float]
    versions: dict[str, str]
    model: str
    clock: Literal["engine"] = "engine"
    settings: dict[str, Any]
    calibration: CalibrationRecord
    ttft_s: float
    tbt_s: float
    engines: dict[str, EngineRecord]
    arms: dict[str, ArmRecord]
    workloads: list[WorkloadResult]
    unfinished: int
    verdicts: list[Verdict]
