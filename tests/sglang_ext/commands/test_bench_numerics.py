"""`grape bench numerics`, without an engine."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

pytest.importorskip("sglang", reason="the benchmark needs the extra `sglang`")

from sglang_ext.bench.machine import Machine
from sglang_ext.bench.numerics.answers import Answer, Streamed
from sglang_ext.bench.numerics.arms import ARMS, FIRST_CHUNKS, MONOLITHIC, SECOND_CHUNKS
from sglang_ext.bench.numerics.pair import Share
from sglang_ext.bench.numerics.record import DtypeResult, NumericsRecord, Seeds
from sglang_ext.commands.bench_numerics import bench_numerics


def invoke(*arguments):
    return CliRunner().invoke(bench_numerics, arguments, catch_exceptions=False)


def answers(*outputs: tuple[int, int]) -> list[Answer]:
    return [Answer(ids=list(ids), top={1: -0.1, 2: -0.2}) for ids in outputs]


@pytest.fixture
def record() -> NumericsRecord:
    whole, changed = answers((1, 2), (1, 2)), answers((1, 2), (1, 3))
    streamed = [Streamed(prompt=[1] * 10, answer=a, early_tokens=8, early_chunks=2) for a in changed]
    plain = {MONOLITHIC: whole, FIRST_CHUNKS: answers((2, 2), (1, 3)), SECOND_CHUNKS: whole}
    seeds = Seeds(again=Share.count_of([True, False]), streamed=Share.count_of([False, False]))
    return NumericsRecord(
        started="2026-01-01T00:00:00+00:00",
        seconds=60.0,
        machine=Machine(system="Linux", processor="a CPU", cpus=2, memory_bytes=1, accelerator=None, variables={}),
        load=(0.1, 0.2),
        versions={},
        model="a/model",
        settings={"prompts": 2, "inputs": "built in", "streamed": 36, "answer": 2},
        arms={arm.name: arm.about for arm in ARMS},
        engines={},
        results=[DtypeResult.of("float32", streamed, plain, seeds)],
    )


def test_a_record_is_shown_and_printed(record, tmp_path):
    file = tmp_path / "record.json"
    file.write_text(record.model_dump_json())
    shown = invoke("--read", str(file))
    assert shown.exit_code == 0
    assert "streamed / monolithic" in shown.stdout and "1: 50.0%" in shown.stdout
    assert "Outputs differ 0.50 [" in shown.stdout
    assert "1 of 2 outputs come out alike when sent again, 0 of 2 streamed" in shown.stdout
    assert NumericsRecord.model_validate_json(invoke("--read", str(file), "--json").stdout) == record


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("word",), "unexpected argument 'word'"),
        (("--", "--dtype", "float16"), "--dtype is set by the benchmark itself"),
        (("--", "--chunked-prefill-size", "4"), "--chunked-prefill-size is set by the benchmark itself"),
    ],
)
def test_wrong_usage(arguments, message):
    shown = invoke("--model", "no/such/model", *arguments)
    assert shown.exit_code == 2
    assert message in shown.stderr and "Traceback" not in shown.stderr
