"""`grape bench engine` on real engines, and what its recorder reads of SGLang's batches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from sglang.srt.model_executor.forward_batch_info import ForwardMode

from sglang_ext.bench.engine_arms import PLATFORM, TORCH_NATIVE, TRANSFORMERS
from sglang_ext.bench.engine_record import EngineBenchRecord
from sglang_ext.bench.point import POINTS
from sglang_ext.bench.profile_record import ProfileRecord
from sglang_ext.bench.step_profile import HEAD, LINEAR, PRODUCTS
from sglang_ext.bench.step_recorder import contents

EAGER = TRANSFORMERS[1]
ROOT = Path(__file__).parents[2]


def batch(mode: ForwardMode, requests: int, decoding: int = 0, **extend: list[int]) -> SimpleNamespace:
    reqs = [object() for _ in range(requests)]
    return SimpleNamespace(forward_mode=mode, reqs=reqs, decoding_reqs=reqs[requests - decoding :] or None, **extend)


def test_contents_of_batches() -> None:
    assert contents(batch(ForwardMode.DECODE, 5)) == (5, [])
    whole = batch(ForwardMode.EXTEND, 2, prefix_lens=[0, 64], extend_lens=[10, 1])
    whole.decoding_reqs = None
    assert contents(whole) == (0, [(0, 10), (64, 1)])
    mixed = batch(ForwardMode.MIXED, 3, decoding=2, prefix_lens=[512, 99, 80], extend_lens=[16, 1, 1])
    assert contents(mixed) == (2, [(512, 16)])


def bench(*arguments: str) -> str:
    code = "from sglang_ext.commands.bench_engine import bench_engine; bench_engine()"
    command = [sys.executable, "-c", code, *arguments, "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=550, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_point_is_measured(tiny_model: Path) -> None:
    record = EngineBenchRecord.model_validate_json(bench("--model", str(tiny_model), "--repetitions", "1"))
    assert [point.label for point in record.points] == [point.label for point in POINTS]
    assert record.threads == 1
    attention = {name: engine.resolved["attention_backend"] for name, engine in record.engines.items()}
    assert attention == {PLATFORM: "grape_cpu", TORCH_NATIVE: "torch_native"}
    for point in record.points:
        assert set(point.arms) == set(record.arms) - ({EAGER} if point.label == "prefill 2,048" else set())
        assert point.baseline is not None
        for arm in point.arms.values():
            assert 0 < arm.limit_share < 1
            assert (arm.mixed_ratio is not None) == (point.kind == "mixed")
    assert all(goal.reached is not None for goal in record.goals)


@pytest.mark.slow
def test_a_decode_step_is_profiled(tiny_model: Path) -> None:
    record = ProfileRecord.model_validate_json(bench("--model", str(tiny_model), "--profile"))
    assert [profile.batch for profile in record.profiles] == [1, 16]
    for profile in record.profiles:
        groups = {group.group: group for group in profile.groups}
        assert {LINEAR, HEAD, PRODUCTS} <= set(groups)
        # Two layers: query, key and value in one, output, gate and up in one, down.
        assert groups[LINEAR].calls >= 2 * 4
        assert abs(sum(group.share for group in profile.groups) - 1) < 1e-6
