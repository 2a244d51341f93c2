"""`grape bench simulate`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from sglang_ext.bench.simulation.record import SimulationRecord
from sglang_ext.bench.simulation.rooflines import machine_names
from sglang_ext.commands.bench_simulate import bench_simulate

SMALL = ("--seeds", "2", "--runs", "8", "--arm", "mixed-128/prewarm", "--load", "4", "--seconds", "0")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(bench_simulate, arguments, catch_exceptions=False)


def record(*arguments: str) -> SimulationRecord:
    result = invoke(*SMALL, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return SimulationRecord.model_validate_json(result.stdout)


def test_table_says_that_it_is_simulated():
    result = invoke(*SMALL)
    assert result.exit_code == 0
    titles = [line for line in result.stdout.splitlines() if "runs/s" in line or "against stock" in line]
    assert titles and all(line.startswith("simulated:") for line in titles)
    assert "none was measured on an engine" in result.stdout
    for arm in ("default/plain", "mixed-128/prewarm", "deadline"):
        assert arm in result.stdout


def test_record_is_the_same_each_time():
    first, again = record(), record()
    assert first == again
    assert first.simulated is True
    (load,) = first.loads
    assert set(load.arms) == {"default/plain", "mixed-128/prewarm", "deadline"}
    assert all(arm.figures.runs == 16 for arm in load.arms.values())
    assert "switch P95" in load.arms["deadline"].ratios["default"]


@pytest.mark.parametrize("name", machine_names())
def test_every_machine(name):
    assert record("--device", name).machine["name"] == name


@pytest.mark.parametrize("name", ["code", "summary", "chat"])
def test_every_workload(name):
    (load,) = record("--workload", name).loads
    assert (load.arms["deadline"].figures.switch is None) is (name == "chat")


def test_arrivals_last_as_long_as_asked():
    (load,) = record("--seconds", "5").loads
    assert load.arms["deadline"].figures.runs == 2 * 20


def test_named_loads_do_not_depend_on_the_policy():
    loads = [record("--load", "knee", "--policy", policy).loads[1].rate for policy in ("deadline", "budget")]
    assert loads[0] == loads[1] > 0


def test_parts_switched_off_and_streaming_are_arms_of_their_own():
    (load,) = record("--policy-off", "ridge", "--streaming", "on", "--streaming", "off").loads
    assert {"deadline", "deadline -ridge", "deadline (off)", "deadline -ridge (off)"} < set(load.arms)


def test_orders_of_giving_kv_back_are_arms_and_differ_where_kv_is_short():
    orders = ("--eviction", "distance", "--eviction", "lru", "--workload", "code", "--policy", "paper")
    (wide,) = record(*orders).loads
    (tight,) = record(*orders, "--kv", "2500").loads
    assert {"paper distance", "paper lru"} < set(tight.arms)
    assert wide.arms["paper distance"].figures == wide.arms["paper lru"].figures
    assert tight.arms["paper distance"].figures != tight.arms["paper lru"].figures


@pytest.mark.parametrize("load", ["4", "knee"])
def test_too_little_kv_for_one_prompt_is_said(load):
    result = invoke(
        "--workload", "code", "--arm", "default", "--kv", "150", "--runs", "4", "--seeds", "1", "--load", load
    )
    assert result.exit_code == 2
    assert "tokens of KV where" in result.stderr and "--kv" in result.stderr


def test_closed_loop_has_no_rate():
    result = invoke("--seconds", "0", "--runs", "8", "--seeds", "1", "--arm", "default", "--in-flight", "3", "--json")
    (load,) = SimulationRecord.model_validate_json(result.stdout).loads
    assert (load.load, load.rate) == ("closed", None)


def test_arrivals_of_a_trace(tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps({"timestamp": 1000 * n * n}) + "\n" for n in range(40)))
    own, poisson = record("--arrivals", str(trace)), record()
    assert own.loads[0].arms["deadline"].figures != poisson.loads[0].arms["deadline"].figures
    assert own.settings["arrivals"] == str(trace)


def test_measured_profile(tmp_path):
    profile = tmp_path / "mine.json"
    profile.write_text(json.dumps({"cost": {"fixed": 0.5, "token": 0.01}, "overlap": "none"}))
    found = record("--profile", str(profile))
    assert found.unloaded_s == 0.5
    assert (found.machine["name"], found.machine["overlap"]) == ("mine", "none")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--load", "knee", "--load", "fast"),
            "--load fast: a number of runs per second above 0, or one of knee, busy",
        ),
        (("--load", "-1"), "above 0"),
        (("--load", "inf"), "above 0"),
        (("--in-flight", "4"), "closed loop, which has no rate"),
        (("--device", "h200-9b"), "did you mean h200-8b"),
        (("--policy", "dedline"), "did you mean 'deadline'"),
        (("--policy-off", "rigde"), "did you mean 'ridge'"),
        (("--policy", "stock"), "simulate a stock arm"),
        (("--policy", "budget", "--policy-off", "ridge"), "part of the policy 'budget'"),
        (("--arm", "mixed"), "an arm is default, mixed-N"),
        (("--arm", "default/warm"), "/prewarm-priority behind it"),
    ],
)
def test_wrong_usage(arguments, said):
    result = invoke(*SMALL, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_profile_that_is_none(tmp_path):
    profile = tmp_path / "mine.json"
    for content, said in [("[]", "no object"), ("{", "cannot read"), ('{"cost": {"fast": 1}}', "no cost model")]:
        profile.write_text(content)
        result = invoke(*SMALL, "--profile", str(profile))
        assert result.exit_code == 2
        assert said in result.stderr
