"""Measured times of steps, and objectives in seconds, without an engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sglang_ext.engine.objectives import Objectives
from sglang_ext.engine.step_meter import TOGETHER, StepMeter, load_of
from sglang_ext.latency_bound import read_bound
from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.step_times import StepTimes

ROW, MIXED = Load(rows=1), Load(rows=1, tokens=16)


class Observer(StepTimes):
    """Notes what it is to learn from."""

    def __init__(self) -> None:
        super().__init__(CostModel(fixed=0.01))
        self.seen: list[tuple[Load, float]] = []

    def observe(self, load: Load, seconds: float) -> None:
        self.seen.append((load, round(seconds, 6)))


def learned(times: Observer, meter: StepMeter) -> list[tuple[Load, float]]:
    """What has been learned once there was enough to learn from."""
    assert times.seen == []
    for second in range(TOGETHER + 2):
        meter.tick(1000.0 + second)
        meter.launch(ROW)
    assert len(times.seen) == TOGETHER
    return times.seen


@pytest.mark.parametrize(
    ("lag", "seen"), [(0, [(ROW, 1.0), (MIXED, 2.0), (ROW, 4.0)]), (1, [(ROW, 2.0), (MIXED, 4.0)])]
)
def test_a_step_has_the_time_in_which_it_runs(lag: int, seen: list[tuple[Load, float]]) -> None:
    times = Observer()
    meter = StepMeter(times, lag)
    for now, load in ((0.0, ROW), (1.0, MIXED), (3.0, ROW), (7.0, ROW)):
        meter.tick(now)
        meter.launch(load)
    assert (meter.steps, meter.seconds) == (len(seen), sum(seconds for _, seconds in seen))
    assert learned(times, meter)[: len(seen)] == seen


def test_idle_time_is_nobodys() -> None:
    times = Observer()
    meter = StepMeter(times, 0)
    for now, load in ((0.0, ROW), (1.0, None), (50.0, ROW), (None, ROW), (60.0, ROW), (61.0, ROW)):
        meter.tick(now)
        meter.launch(load)
    assert meter.steps == 2
    assert learned(times, meter)[:2] == [(ROW, 1.0), (ROW, 1.0)]


def test_the_load_of_a_mixed_batch() -> None:
    rows = [SimpleNamespace(origin_input_ids=[0] * known, output_ids=[0] * new) for known, new in ((90, 10), (49, 1))]
    chunk = SimpleNamespace(prefix_len=10, extend_len=4)

    def batch(extend: bool, **fields: Any) -> Any:
        return SimpleNamespace(forward_mode=SimpleNamespace(is_extend=lambda: extend), **fields)

    assert load_of(None) is None
    assert load_of(batch(False, reqs=rows)) == Load(rows=2, kv=150)
    mixed = batch(True, reqs=[chunk, rows[0]], decoding_reqs=rows[:1])
    assert load_of(mixed) == Load(rows=1, kv=100).plus(10, 4)
    alone = batch(True, reqs=[chunk], decoding_reqs=None)
    assert load_of(alone) == Load().plus(10, 4)


@pytest.mark.parametrize(
    ("text", "bound"), [("", None), ("250ms", {"seconds": 0.25}), ("1.5s", {"seconds": 1.5}), ("3x", {"steps": 3.0})]
)
def test_bounds_are_read(text: str, bound: dict[str, float] | None) -> None:
    assert read_bound(text) == bound


@pytest.mark.parametrize("text", ["3", "0s", "-1ms", "infs", "nanx", "x", "3 steps"])
def test_other_bounds_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a latency is a positive number"):
        read_bound(text)


def test_multiples_are_of_the_step_as_it_is_now() -> None:
    objectives = Objectives("1.5s", "3x", 0.02)
    ordinary: Any = SimpleNamespace(slo=None)
    assert objectives.of(ordinary) == (1.5, pytest.approx(0.06))
    objectives.step_s = 0.04
    assert objectives.of(ordinary) == (1.5, pytest.approx(0.12))
