"""The online correction of F: it follows the machine, and no outlier bends it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.online_fit import OnlineFit, guess
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.strategies import CPU

DECODE, MIXED, PREFILL = Load(4, 0, 400), Load(4, 32, 400), Load(0, 32, 0)


def test_it_follows_a_machine_that_is_slower_in_one_regime() -> None:
    times = StepTimes(CPU)
    for _ in range(200):
        times.observe(MIXED, CPU.time(MIXED) * 1.3)
        times.observe(DECODE, CPU.time(DECODE))
    assert times.time(MIXED) == pytest.approx(CPU.time(MIXED) * 1.3, rel=0.01)
    assert times.time(DECODE) == pytest.approx(CPU.time(DECODE))
    assert times.time(PREFILL) == CPU.time(PREFILL)


def test_one_outlier_moves_it_by_two_percent_and_is_forgotten() -> None:
    times = StepTimes(CPU)
    times.observe(DECODE, CPU.time(DECODE) * 100)
    assert 1.0 < times.factor("decode") < 1.025
    for _ in range(30):
        times.observe(DECODE, CPU.time(DECODE))
    assert times.factor("decode") == pytest.approx(1.0, abs=0.002)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60))
def test_it_is_bounded_whatever_is_measured(measured: list[float]) -> None:
    times = StepTimes(CPU)
    for seconds in measured:
        times.observe(MIXED, seconds)
    assert 0.5 <= times.factor("mixed") <= 2.0


def test_a_long_series_stops_at_twice_the_model() -> None:
    times = StepTimes(CPU)
    for _ in range(1000):
        times.observe(DECODE, 1000.0)
    assert times.factor("decode") == pytest.approx(2.0)


def test_room_is_corrected() -> None:
    times = StepTimes(CostModel(fixed=0.04, token=0.001))
    assert times.room(Load(rows=1), 0, 0.1001, 500) == 60
    for _ in range(400):
        times.observe(Load(1, 60), 0.2)
    assert times.room(Load(rows=1), 0, 0.1001, 500) == pytest.approx(10, abs=1)
    assert times.room(Load(), 0, 0.1001, 500) == 60, "prefill alone was not measured"


def test_without_a_profile_the_model_itself_is_replaced() -> None:
    start = guess()
    times = StepTimes(start, OnlineFit(start))
    true = CostModel(fixed=0.008, row=0.0001, token=0.00002)
    for step in range(320):
        load = Load(1 + step % 8, 0, 500).plus(100, (0, 16, 64)[step % 3])
        times.observe(load, true.time(load))
    assert times.model is not start
    load = Load(4, 48, 600)
    assert times.time(load) == pytest.approx(true.time(load), rel=0.1)
    assert not math.isclose(start.time(load), true.time(load), rel_tol=0.5)
