"""`grape bench workflows` on real engines, of a tiny model."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sglang_ext.bench.workflows.cell import Cell
from sglang_ext.bench.workflows.record import WorkflowRecord

ROOT = Path(__file__).parents[2]
ARMS = ("grape", "default/plain", "default/prewarm")


def bench(*arguments: str) -> WorkflowRecord:
    code = "from sglang_ext.commands.bench_workflows import bench_workflows; bench_workflows()"
    command = [sys.executable, "-c", code, *arguments, "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return WorkflowRecord.model_validate_json(done.stdout)


@pytest.mark.slow
def test_three_arms_and_going_on(tiny_model: Path, tmp_path: Path) -> None:
    arguments = ["--model", str(tiny_model), "--load", "4", "--seconds", "3", "--output", str(tmp_path)]
    arguments += [part for arm in ARMS for part in ("--arm", arm)]
    record = bench(*arguments, "--repetitions", "1")
    ((load,),) = (workload.loads for workload in record.workloads)
    assert set(load.arms) == set(ARMS) and record.unfinished == 0
    cells = [Cell.model_validate_json(file.read_bytes()) for file in tmp_path.glob("search.*.json")]
    assert len({cell.prompts for cell in cells}) == 1
    for cell in cells:
        # Each token once, in the run's own order, and not before its run was submitted.
        assert len(cell.late) == sum(run.tokens for run in cell.repetition.runs)
        assert all(0 < run.first_token_s <= run.completion_s < cell.seconds + 1 for run in cell.repetition.runs)
        assert -0.05 < sorted(cell.late)[len(cell.late) // 2] < 0.5
        assert cell.distinct <= cell.repetition.computed + len(cell.late)
        # fp32 on one thread: what is chunked otherwise still gives the same tokens.
        assert cell.outputs == cells[0].outputs
    grape, plain = load.arms["grape"], load.arms["default/plain"]
    assert grape.ratios["default"]["switch P95"].value > 0
    assert plain.engine is not None and 0 < plain.engine.plan_share < 1
    begin = time.monotonic()
    assert bench(*arguments, "--repetitions", "1").workloads == record.workloads
    assert time.monotonic() - begin < 30, "an engine was started, though nothing was missing"
