"""`grape bench numerics` on real engines, of a tiny model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sglang_ext.bench.numerics.arms import ARMS
from sglang_ext.bench.numerics.record import NumericsRecord

ROOT = Path(__file__).parents[2]
PROMPTS = 4


@pytest.mark.slow
def test_all_arms_in_fp32(tiny_model: Path) -> None:
    code = "from sglang_ext.commands.bench_numerics import bench_numerics; bench_numerics()"
    arguments = ["--model", str(tiny_model), "--prompts", str(PROMPTS), "--dtype", "float32", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    record = NumericsRecord.model_validate_json(done.stdout)
    (result,) = record.results
    assert set(result.outputs) == {arm.name for arm in ARMS}
    assert all(len(own) == PROMPTS for own in result.outputs.values())
    assert result.early_chunks >= 1 and result.early_tokens > 0, "nothing was streamed"
    # In fp32 another order of the sums is far too small to be seen in logprobs.
    assert all(pair.logprobs.most < 1e-2 for pair in result.pairs)
    sizes = {engine.resolved["chunked_prefill_size"] for engine in record.engines.values() if engine.plugin is None}
    assert len(sizes) == 3 and {engine.resolved["dtype"] for engine in record.engines.values()} == {"float32"}
