"""From the samples of points to ratios and goals, and the order in which they are taken."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("torch")

from sglang_ext.bench.engine_arms import PLATFORM, TRANSFORMERS
from sglang_ext.bench.engine_goal import judge
from sglang_ext.bench.machine_limits import MachineLimits
from sglang_ext.bench.point import Decode, Mixed, Prefill
from sglang_ext.bench.point_measurement import PointMeasurement
from sglang_ext.bench.point_result import Timing, summarise
from sglang_ext.bench.point_sample import PointSample

SDPA, EAGER = TRANSFORMERS


def samples(*seconds, alone=None):
    return [PointSample(seconds=each, alone_s=alone) for each in seconds]


def result(point, limit_s=0.01, **arms):
    named = {name.replace("_", "-"): own for name, own in arms.items()}
    return summarise(point, named, limit_s, TRANSFORMERS)


def test_timing_has_its_ends():
    assert Timing.of([4.0, 1.0, 2.0, 3.0, 5.0]) == Timing(median=3, q1=2, q3=4, least=1, most=5)


def test_ratios_are_to_the_better_attention_and_the_limit():
    found = result(
        Decode(4),
        platform=samples(0.04, 0.05, 0.06),
        transformers_sdpa=samples(0.2, 0.2, 0.2),
        transformers_eager=samples(0.1, 0.1, 0.1),
    )
    assert found.baseline == EAGER
    own = found.arms[PLATFORM]
    assert own.speed.value == pytest.approx(2.0)
    assert own.speed.low < 2.0 < own.speed.high
    assert own.limit_share == pytest.approx(0.2)
    assert own.tokens_per_s == pytest.approx(4 / 0.05)
    assert own.mixed_ratio is None
    assert found.arms[SDPA].speed.value == pytest.approx(0.5)
    assert found.arms[EAGER].speed.value == 1.0
    assert (found.kind, found.shape) == ("decode", {"batch": 4, "context": 512})


def test_a_mixed_step_is_compared_with_its_own_run():
    found = result(Mixed(8, 16), platform=samples(0.06, 0.07, alone=0.05))
    assert found.arms[PLATFORM].mixed_ratio.value == pytest.approx(1.3)
    assert (found.baseline, found.arms[PLATFORM].speed) == (None, None)


def goals(*pairs):
    return {goal.goal: goal for goal in judge(dict(pairs))}


def test_goals_are_open_where_nothing_was_measured():
    found = goals()
    assert len(found) == 10
    assert {(goal.found, goal.reached) for goal in found.values()} == {(None, None)}
    alone = goals((Decode(1), result(Decode(1), platform=samples(0.02))))
    assert [goal.found for goal in alone.values() if goal.reached is not None] == [0.5]


@pytest.mark.parametrize(("seconds", "reached"), [(0.0624, True), (0.0626, False)])
def test_a_speed_goal(seconds, reached):
    point = Decode(1)
    found = goals((point, result(point, platform=samples(seconds), transformers_sdpa=samples(0.1))))
    assert found["decode, batch 1, against transformers"].reached is reached


@pytest.mark.parametrize(("mixed", "reached"), [(0.0674, True), (0.0676, False)])
def test_a_cost_goal(mixed, reached):
    point = Mixed(8, 16)
    found = goals((point, result(point, platform=samples(mixed, alone=0.05))))
    (own,) = [goal for goal in found.values() if goal.found is not None]
    assert (own.wanted, own.at_most, own.reached) == (1.35, True, reached)


def test_goals_across_points():
    one, many, near, far = Decode(1), Decode(16), Prefill(16, 64), Prefill(16, 2048)
    found = goals(
        (one, result(one, platform=samples(0.03), transformers_sdpa=samples(0.05), transformers_eager=samples(0.04))),
        (many, result(many, platform=samples(0.064), transformers_sdpa=samples(0.192))),
        (near, result(near, platform=samples(0.05))),
        (far, result(far, platform=samples(0.1))),
    )
    assert found["decode tokens/s, batch 16, against transformers' batch 1"].found == pytest.approx(250 / 25)
    assert found["decode tokens/s, batch 16, against transformers' batch 16"].found == pytest.approx(3.0)
    assert found["chunk of 16 behind 2,048, against behind 64"].found == pytest.approx(2.0)
    assert found["chunk of 16 behind 2,048, against behind 64"].reached is False


class CountingArm:
    def __init__(self, name, log, refused=None):
        self.name = name
        self._log = log
        self._refused = refused

    def takes(self, point):
        return point != self._refused

    async def measure(self, point):
        self._log.append((self.name, point.label))
        return PointSample(seconds=len(self._log))


class Probe:
    def __init__(self, log):
        self._log = log

    def measure(self):
        self._log.append("limits")
        return MachineLimits(bytes_per_s=len(self._log), flops=1)


def test_points_are_measured_in_turns():
    log, said = [], []
    arms = [CountingArm(name, log) for name in "abc"]
    points = [Decode(1), Decode(4)]
    measurement = PointMeasurement(arms, Probe(log), points, 2, said.append)
    measured = asyncio.run(measurement.run())
    turns = [entry[0] for entry in log if entry != "limits"]
    assert "".join(turns) == "abcabc" + "abcabc" + "bcabca"
    assert len(said) == measurement.turns == 18
    assert [index for index, entry in enumerate(log) if entry == "limits"] == [6, 13]
    assert len(measured.limits) == 2
    # What warms up is not counted.
    assert [sample.seconds for sample in measured.samples[Decode(1)]["a"]] == [8, 17]


def test_an_arm_is_left_out_where_it_takes_no_part():
    log = []
    points = [Decode(1), Decode(4)]
    arms = [CountingArm("a", log), CountingArm("b", log, refused=Decode(1))]
    measurement = PointMeasurement(arms, Probe(log), points, 2)
    measured = asyncio.run(measurement.run())
    assert measurement.turns == len(log) - 2 == 9
    assert {point: list(own) for point, own in measured.samples.items()} == {Decode(1): ["a"], Decode(4): ["a", "b"]}
