"""`grape bench workflows`, without an engine."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

pytest.importorskip("sglang", reason="the benchmark needs the extra `sglang`")

from sglang_ext.bench.gap_record import ArmRecord, EngineRecord
from sglang_ext.bench.machine import Machine
from sglang_ext.bench.workflows.goals import judge
from sglang_ext.bench.workflows.record import WorkflowRecord, WorkloadResult
from sglang_ext.commands.bench_workflows import bench_workflows
from tests.sglang_ext.bench.workflows.cells import CALIBRATION
from tests.sglang_ext.bench.workflows.test_results import ARMS, result

MACHINE = Machine(system="Linux", processor="a CPU", cpus=2, memory_bytes=1 << 30, accelerator=None, variables={})


def invoke(*arguments):
    return CliRunner().invoke(bench_workflows, arguments, catch_exceptions=False)


@pytest.fixture
def record():
    found = result(grape=(0.1, 0.2), default=(0.4, 1.0), mixed=(0.1, 0.8), prewarm=(0.2, 0.4))
    workloads = [WorkloadResult(workload="search", screen=found, kept=["mixed-128/plain"], loads=[found])]
    return WorkflowRecord(
        mode="quick",
        indicative=True,
        started="2026-01-01T00:00:00+00:00",
        seconds=600.0,
        machine=MACHINE,
        load=(0.1, 2.0),
        versions={"sglang": "0.5.23"},
        model="a/model",
        settings={
            "repetitions": 2,
            "seconds": 20.0,
            "inputs": "built in",
            "arrivals": "poisson",
            "policy": "deadline",
        },
        calibration=CALIBRATION,
        ttft_s=4.0,
        tbt_s=0.3,
        engines={"grape": EngineRecord(flags=[], environment={}, resolved={}, plugin={})},
        arms={
            n: ArmRecord(engine=a.engine.name, client=a.client, stock=a.stock, about=a.about) for n, a in ARMS.items()
        },
        workloads=workloads,
        unfinished=3,
        verdicts=judge(workloads, "grape"),
    )


@pytest.fixture
def file(record, tmp_path):
    file = tmp_path / "record.json"
    file.write_text(record.model_dump_json())
    return file


def test_a_record_is_shown(file):
    shown = invoke("--read", str(file))
    assert shown.exit_code == 0
    assert "indicative: search, knee (0.5 runs/s)" in shown.stdout
    assert "indicative: screen of search, knee" in shown.stdout
    assert "kept of search: mixed-128/plain" in shown.stdout
    assert "grape against stock, below 1 is better" in shown.stdout
    assert "3 cells were not measured" in shown.stdout
    assert (
        "met: gap at a task switch, P95, 3 times under the best viable plain client: search knee: 0.25" in shown.stdout
    )
    assert "open: tokens/s, closed loop" in shown.stdout
    # Gaps are in unloaded decode steps of 100 ms, so the switch of 0.2 s is 2.
    row = next(line for line in shown.stdout.splitlines() if line.split()[:1] == ["grape"])
    assert row.split()[4] == "2.00"


def test_a_record_is_printed_as_it_was(file, record):
    printed = invoke("--read", str(file), "--json")
    assert WorkflowRecord.model_validate_json(printed.stdout) == record


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--load", "fast"), "--load fast: a number of runs per second above 0, or one of half, knee, busy"),
        (("--load", "0"), "--load 0: a number"),
        (("--load", "inf"), "--load inf: a number"),
        (("--arm", "mixed"), "no arm 'mixed'; an arm is grape"),
        (("--policy", "dedline"), "unknown policy 'dedline'; did you mean 'deadline'"),
        (("--screen", "--arm", "grape"), "--screen tries every stock setting; leave --arm out"),
        (("--in-flight", "2", "--load", "knee"), "leave --load out"),
        (("word",), "unexpected argument 'word'"),
        (("--", "--schedule-policy", "lpm"), "--schedule-policy is set by the benchmark itself"),
        (("--", "--no-such-flag"), "SGLang does not take these flags"),
    ],
)
def test_wrong_usage(arguments, message):
    shown = invoke("--model", "no/such/model", *arguments)
    assert shown.exit_code == 2
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_trace_that_is_none(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("a,b\n1,2\n")
    shown = invoke("--model", "no/such/model", "--arrivals", str(file))
    assert shown.exit_code == 2 and "is no trace" in shown.stderr


def test_options_of_wrong_kinds(tmp_path):
    for arguments in (
        ("--repetitions", "0"),
        ("--workload", "serach"),
        ("--seconds", "0"),
        ("--workloads", "/no/where"),
    ):
        assert invoke(*arguments).exit_code == 2


def test_a_record_of_something_else(tmp_path):
    file = tmp_path / "record.json"
    file.write_text('{"kind": "grape.bench.gap/1"}')
    shown = invoke("--read", str(file))
    assert shown.exit_code == 2 and "is no record of this benchmark" in shown.stderr
