"""From steps to a profile's model, its error and the noise."""

from __future__ import annotations

import pytest

from sglang_ext.bench.step_cost.check import CORRECTED, FITTED, LEARNED, check
from sglang_ext.bench.step_cost.measured import Measurements, drift, fitted, noise
from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.profile.profile import Measurement
from tests.sglang_ext.bench.step_cost.machines import run, step

CPU = CostModel(fixed=0.030, row=0.0011, token=0.0008, prefill=0.002, piece=0.004, kv=4e-6, attention=6e-8)
GPU = CostModel(fixed=0.006, piece=0.0001, kv=4e-8, attention=2e-10, knee=140.0, beyond=0.00004)
# The mean of the absolute value of a normal error of 1.
NORMAL = 0.798


def measurements(cost: CostModel, noise: float = 0.0, settings: int = 120) -> Measurements:
    found = Measurements()
    for number, steps in run(cost, settings, noise):
        found.add(number, steps)
    return found


@pytest.mark.parametrize("cost", [CPU, GPU], ids=["cpu", "gpu"])
def test_known_costs_are_found_within_the_noise(cost: CostModel) -> None:
    found = fitted(measurements(cost, noise=0.05).list())
    assert found.noise["all"] == pytest.approx(0.05 * NORMAL, rel=0.15)
    assert found.cost.errors["all"] < 1.25 * found.noise["all"]
    assert set(found.cost.errors) == {"all", "decode", "mixed", "prefill"}
    for load in (Load(1, 0, 500), Load(16, 0, 8000), Load(4, 0, 2000).plus(500, 64), Load(8, 0, 800).plus(0, 300)):
        assert found.cost.time(load) == pytest.approx(cost.time(load), rel=0.05)


def test_whole_settings_are_held_out() -> None:
    listed = measurements(CPU).list(seed=1)
    by_setting: dict[int, set[bool]] = {}
    for each in listed:
        by_setting.setdefault(each.setting, set()).add(each.held_out)
    assert all(len(kinds) == 1 for kinds in by_setting.values())
    assert sum(kinds == {True} for kinds in by_setting.values()) in (12, 13)
    assert {each.load.regime for each in listed if each.held_out} == {"decode", "mixed", "prefill"}
    assert listed == measurements(CPU).list(seed=1) != measurements(CPU).list(seed=2)


def test_what_is_held_out_is_not_fitted() -> None:
    listed = measurements(CPU, noise=0.02).list()
    spoilt = [
        each.model_copy(update={"seconds": tuple(9 * s for s in each.seconds)}) if each.held_out else each
        for each in listed
    ]
    assert fitted(spoilt).cost.time(Load(8, 0, 4000)) == fitted(listed).cost.time(Load(8, 0, 4000))
    assert fitted(spoilt).cost.errors["all"] == pytest.approx(8 / 9, abs=0.02)


def test_steps_of_one_visit_and_make_up_are_put_together() -> None:
    found = Measurements()
    probe = ((64, 16), (0, 4))
    found.add(3, [step(CPU, 2, 100, ()), step(CPU, 2, 102, probe), step(CPU, 2, 104, probe[::-1])])
    found.add(4, [step(CPU, 2, 100, ())])
    found.add(3, [step(CPU, 2, 110, ())])
    assert len(found) == 5
    assert [(m.setting, m.visit, m.context, len(m.seconds)) for m in found.list()] == [
        (3, 0, 100, 1),
        (3, 0, 103, 2),
        (4, 1, 100, 1),
        (3, 2, 110, 1),
    ]


def test_noise_is_that_of_a_step_against_the_truth() -> None:
    pair = Measurement(setting=0, visit=0, rows=1, context=10, pieces=(), seconds=(0.9, 1.1))
    alone = Measurement(setting=0, visit=1, rows=0, context=0, pieces=((0, 5),), seconds=(5.0,))
    assert noise([pair, alone]) == {
        "all": pytest.approx((0.2 / 0.9 + 0.2 / 1.1) / 2 * 0.5**0.5),
        "decode": pytest.approx((0.2 / 0.9 + 0.2 / 1.1) / 2 * 0.5**0.5),
    }
    assert noise([alone]) == drift([pair, alone]) == {}


def test_drift_is_that_of_a_step_against_other_visits() -> None:
    """A machine that is half as fast in the second visit, with no noise at all."""
    first, second, other = (
        Measurement(setting=0, visit=visit, rows=rows, context=10, pieces=(), seconds=(seconds,) * 3)
        for visit, rows, seconds in ((0, 1, 1.0), (4, 1, 2.0), (4, 2, 9.0))
    )
    assert noise([first, second, other])["all"] == 0.0
    assert drift([first, second, other]) == {
        "all": pytest.approx((1.0 + 0.5) / 2 * 0.5**0.5),
        "decode": pytest.approx((1.0 + 0.5) / 2 * 0.5**0.5),
    }


def test_too_few_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 10 measured steps"):
        fitted(measurements(CPU, settings=1).list())


def test_a_run_is_checked_step_by_step() -> None:
    """A machine that is 30% slower than its profile: the correction follows it."""
    slower = CostModel(fixed=CPU.fixed * 1.3, row=CPU.row * 1.3, token=CPU.token * 1.3)
    cost = CostModel(fixed=CPU.fixed, row=CPU.row, token=CPU.token)
    steps = [step(slower, 1 + i % 8, 0, ((0, 16),) if i % 2 else ()) for i in range(400)]
    paused = step(slower, 1, 0, ())
    found = check(cost, [*steps, type(paused)(9.0, 1, (), 0, paused=True)])
    assert found.left_out == 1
    assert set(found.errors) == {FITTED, CORRECTED, LEARNED}
    fitted_, corrected = found.errors[FITTED], found.errors[CORRECTED]
    assert (fitted_["all"].steps, fitted_["mixed"].steps, fitted_["decode"].steps) == (400, 200, 200)
    assert fitted_["mixed"].mean == pytest.approx(0.3 / 1.3) and fitted_["mixed"].bias < 0
    assert corrected["all"].mean < 0.25 * fitted_["all"].mean
    assert "prefill" not in fitted_
    with pytest.raises(ValueError, match="no step with a time"):
        check(cost, [])
