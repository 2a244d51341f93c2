"""`grape bench engine`, without an engine."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

pytest.importorskip("sglang", reason="the benchmark needs the extra `sglang`")

from sglang_ext.bench.engine_arms import ABOUT, PLATFORM, TRANSFORMERS
from sglang_ext.bench.engine_goal import judge
from sglang_ext.bench.engine_record import EngineBenchRecord, LimitRecord
from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.bench.machine import Machine
from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.point import Decode, Mixed
from sglang_ext.bench.point_result import Timing, summarise
from sglang_ext.bench.point_sample import PointSample
from sglang_ext.bench.profile_record import ProfileRecord
from sglang_ext.bench.step_profile import OperationTime, RawProfile, StepProfile
from sglang_ext.commands.bench_engine import bench_engine

MACHINE = Machine(system="Linux", processor="a CPU", cpus=2, memory_bytes=1 << 30, accelerator=None, variables={})
ENGINE = EngineRecord(flags=[], environment={}, resolved={"attention_backend": "grape_cpu"}, plugin={})
SIZE = ModelSize(layer_weights=1000, head_weights=100, layers=2, query_width=8, kv_width=4, item_bytes=2, vocabulary=10)


def sampled(seconds, alone=None):
    return [PointSample(seconds=seconds + 0.001 * number, alone_s=alone) for number in range(3)]


@pytest.fixture
def record():
    points = {
        Decode(1): {PLATFORM: sampled(0.03), TRANSFORMERS[0]: sampled(0.05), TRANSFORMERS[1]: sampled(0.06)},
        Mixed(8, 16): {
            PLATFORM: sampled(0.08, alone=0.05),
            TRANSFORMERS[0]: sampled(0.2),
            TRANSFORMERS[1]: sampled(0.1),
        },
    }
    results = {point: summarise(point, own, 0.01, TRANSFORMERS) for point, own in points.items()}
    return EngineBenchRecord(
        started="2026-01-01T00:00:00+00:00",
        seconds=600.0,
        machine=MACHINE,
        load=(0.1, 2.0),
        versions={"sglang": "0.5.23"},
        model="a/model",
        size=SIZE,
        dtype="bfloat16",
        threads=2,
        repetitions=3,
        engines={PLATFORM: ENGINE},
        arms={name: ABOUT[name] for name in (PLATFORM, *TRANSFORMERS)},
        limits=LimitRecord(bytes_per_s=Timing.of([3.4e10]), flops=Timing.of([4.3e11])),
        points=list(results.values()),
        goals=judge(results),
    )


def invoke(*arguments):
    return CliRunner().invoke(bench_engine, list(arguments))


def row(text, shown):
    (line,) = [line.strip() for line in shown.splitlines() if text in line]
    return " ".join(line.split())


def test_a_record_is_read_again(record, tmp_path):
    file = tmp_path / "engine.json"
    file.write_text(record.model_dump_json())
    shown = invoke("--read", str(file))
    assert shown.exit_code == 0, shown.output
    assert "31.0 ±0.5" in shown.stdout
    assert "51.0 ±0.5 *" in shown.stdout
    assert row("decode, batch 1, against transformers", shown.stdout).endswith("at least 1.6 1.65 reached")
    assert row("decode batch 8 with 16 prefill", shown.stdout).endswith("at most 1.35 1.62 missed")
    assert shown.stdout.count("open") == 7
    assert "34 (34-34) GB/s" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 110
    again = invoke("--read", str(file), "--json")
    assert EngineBenchRecord.model_validate_json(again.stdout) == record
    assert json.loads(again.stdout)["kind"] == "grape.bench.engine/1"


def test_a_profile_is_read_again(tmp_path):
    operation = OperationTime(name="aten::mm", shapes=[[1, 8], [8, 8]], calls=4, seconds=0.006)
    raw = RawProfile(batch=16, plain_s=0.009, step_s=0.01, operations=[operation])
    record = ProfileRecord(
        machine=MACHINE,
        versions={},
        model="a/model",
        dtype="bfloat16",
        threads=2,
        context=512,
        engine=ENGINE,
        profiles=[StepProfile.of(raw, 1000)],
    )
    file = tmp_path / "profile.json"
    file.write_text(record.model_dump_json())
    shown = invoke("--profile", "--read", str(file))
    assert shown.exit_code == 0, shown.output
    assert "batch 16, context 512: 9.0 ms" in shown.stdout
    assert row("linear layers", shown.stdout) == "linear layers 6.00 60% 4 mm"
    assert invoke("--read", str(file)).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--arm", "transformers-sdpa"], "add one of platform, torch_native"),
        (["--point", "decode, batch 3"], "'decode, batch 3'"),
        (["--profile", "--quick"], "neither --quick"),
        (["--profile", "--arm", "platform", "--arm", "torch_native"], "one engine"),
        (["--profile", "--arm", "transformers-eager"], "one engine"),
        (["dtype"], "unexpected argument 'dtype'"),
        (["--model", "x", "--", "--attention-backend", "triton"], "--attention-backend is set by the benchmark"),
    ],
)
def test_usage(arguments, said):
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert "Traceback" not in result.output
