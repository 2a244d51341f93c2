"""Cells, and what they are measured by, as a measurement gives them."""

from __future__ import annotations

from collections.abc import Sequence

from sglang_ext.bench.recorded_step import RecordedStep
from sglang_ext.bench.repetition import Repetition
from sglang_ext.bench.simulation.machine import Overlap
from sglang_ext.bench.workflows.cell import Cell, CellKey
from sglang_ext.bench.workflows.record import CalibrationRecord
from tests.sglang_ext.bench.recorded_runs import chain

CALIBRATION = CalibrationRecord(
    unloaded_s=0.1,
    cost={"fixed": 0.05, "row": 0.01, "token": 0.001},
    errors={},
    steps=100,
    matrix_flops=4e10,
    client_request_s=0.001,
    client_token_s=0.0001,
    dtype="bfloat16",
    threads=2,
    kv_tokens=1200,
    chunk=512,
    overlap=Overlap.NONE,
)


def cell(
    arm: str,
    workload: str = "search",
    load: str = "knee",
    repetition: int = 1,
    gaps: Sequence[float] = (0.1, 0.2),
    switch: float = 0.5,
    outputs: tuple[str, ...] = ("one", "two"),
    prompts: str = "given",
) -> Cell:
    steps = tuple(RecordedStep(n * 0.1, n * 0.1 + 0.1, rows=2, tokens=10, kv=100, attention=50.0) for n in range(5))
    runs = tuple(chain(gaps, index=n, switch=switch) for n in range(2))
    return Cell(
        key=CellKey(arm=arm, workload=workload, load=load, repetition=repetition),
        repetition=Repetition(runs=runs, steps=steps, computed=50, needed=80, kv_high=120),
        seconds=4.0,
        plan_s=0.005,
        operations=1e9,
        distinct=40,
        late=(0.001, 0.002, 0.004),
        client_s=0.2,
        others_s=1.0,
        prompts=prompts,
        outputs=outputs,
    )
