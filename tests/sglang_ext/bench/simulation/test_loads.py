"""Loads that are found from stock alone."""

from __future__ import annotations

import pytest

from sglang_ext.bench.attainment import Attainment, ServiceLevels
from sglang_ext.bench.repetition import interference
from sglang_ext.bench.run_figures import RunSet
from sglang_ext.bench.simulation import loads
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.loads import BUSY_ATTAINED, KNEE_SHARE, busy, knee
from sglang_ext.bench.simulation.rooflines import machine
from sglang_ext.bench.simulation.simulate import simulate
from sglang_ext.bench.simulation.simulated_arm import stock_arm
from sglang_ext.bench.workload.arrivals import Poisson
from sglang_ext.bench.workload.jobs import JobSource
from sglang_ext.bench.workload.workloads import find

H200 = machine("h200-8b")
SLO = Slo(40 * H200.unloaded_s, 3 * H200.unloaded_s)
SOURCE = JobSource(find("search"))


def make(rate: float):
    return [SOURCE.jobs(max(40, round(rate)), Poisson(rate), seed) for seed in (1, 2)]


def test_knee_is_where_one_token_in_twenty_is_held_up():
    rate = knee(make, H200, SLO)
    default = stock_arm("default")
    below, above = (
        interference([simulate(jobs, H200, default, SLO) for jobs in make(rate * factor)]) for factor in (0.9, 1.1)
    )
    assert below < KNEE_SHARE < above


def test_busy_is_where_the_best_stock_setting_begins_to_fail():
    arms = [stock_arm("default"), stock_arm("mixed-256")]
    rate = busy(make, H200, SLO, arms)
    levels = ServiceLevels(SLO.ttft_s, SLO.tbt_s)

    def best(at: float) -> float:
        return max(
            RunSet([simulate(jobs, H200, arm, SLO).runs for jobs in make(at)], levels).share_kept(Attainment.MEAN)
            for arm in arms
        )

    assert best(rate) >= BUSY_ATTAINED
    assert best(rate * 1.1) < BUSY_ATTAINED


@pytest.mark.parametrize("name", ["a100-8b", "a100-14b", "h200-8b", "h200-14b"])
def test_rooflines_are_of_the_size_that_is_known(name):
    """Decode steps of these models take 5 to 20 ms, and 100 to 200 tokens ride along with one row."""
    found = machine(name)
    assert 0.004 < found.unloaded_s < 0.021
    assert 100 < found.cost.knee < 200
    assert 200_000 < found.kv_tokens < 900_000


def test_more_bandwidth_and_fewer_parameters_make_steps_shorter():
    steps = {name: machine(name).unloaded_s for name in ("a100-8b", "a100-14b", "h200-8b", "h200-14b")}
    assert steps["h200-8b"] < steps["h200-14b"] < steps["a100-14b"]
    assert steps["h200-8b"] < steps["a100-8b"] < steps["a100-14b"]


@pytest.mark.parametrize("turns", [0.003, 0.05, 7.0])
def test_where_a_load_begins_is_found_below_and_above_where_it_is_looked_for(turns):
    assert loads._first(lambda rate: rate > turns) == pytest.approx(turns, rel=0.02)


def test_an_engine_that_no_rate_is_low_enough_for_has_the_least():
    assert loads._first(lambda rate: True) <= 0.001
