"""Fitting F: what made the steps is found again, through noise and outliers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_ext.policy.cost_fit import TERMS, Sample, errors, features, fit
from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.least_squares import solve
from sglang_ext.policy.online_fit import OnlineFit, guess
from tests.sglang_ext.policy.strategies import CPU, GPU

UNEVEN = CostModel(fixed=0.030, row=0.001, token=0.0008, prefill=0.006, kv=2e-6, attention=4e-8)


def profile(model: CostModel, count: int = 300, noise: float = 0.0, outliers: int = 0, seed: int = 1) -> list[Sample]:
    """Steps of a model over the ranges of a profile, log-uniform."""
    rng = random.Random(seed)
    samples = []
    for _ in range(count):
        rows = rng.choice([0, 1, 2, 4, 8, 16, 32])
        tokens = round(2 ** rng.uniform(0, 9)) if not rows or rng.random() < 0.6 else 0
        load = Load(rows, 0, sum(round(2 ** rng.uniform(4, 10)) for _ in range(rows)))
        load = load.plus(round(2 ** rng.uniform(0, 10)), tokens)
        samples.append(Sample(load, model.time(load) * (1 + rng.uniform(-noise, noise))))
    for i in range(outliers):
        samples[i * 7] = Sample(samples[i * 7].load, samples[i * 7].seconds * 8)
    return samples


@pytest.mark.parametrize("model", [CPU, GPU, UNEVEN], ids=["additive", "knee", "all terms"])
def test_a_model_is_found_again(model: CostModel) -> None:
    fitted = fit(profile(model))
    assert fitted.errors["all"] < 0.01
    assert set(fitted.errors) == {"all", "decode", "mixed", "prefill"}
    if model is UNEVEN:
        assert fitted.prefill == pytest.approx(model.prefill, rel=0.1)


@pytest.mark.parametrize("model", [CPU, GPU, UNEVEN], ids=["additive", "knee", "all terms"])
def test_noise_and_outliers_do_not_bend_it(model: CostModel) -> None:
    fitted = fit(profile(model, noise=0.05, outliers=15))
    assert errors(fitted, profile(model, seed=2))["all"] < 0.03


def test_a_knee_is_there_only_where_the_steps_show_one() -> None:
    assert fit(profile(CPU, noise=0.02)).knee == 0.0
    assert 100 < fit(profile(GPU, noise=0.02)).knee < 200
    assert fit(profile(GPU, noise=0.02)).ridge(Load(rows=4), 0.05, 2048) > 100


def test_held_out_steps_are_not_fitted() -> None:
    samples = profile(UNEVEN, noise=0.05)
    assert fit(samples) == fit(samples), "drawn by a seed"
    assert fit(samples).errors != fit(samples, seed=3).errors
    assert fit(samples, held_out=0.0).errors == {}


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 10 measured steps; received 3"):
        fit(profile(CPU, 3))
    with pytest.raises(ValueError, match=r"a step takes longer than 0 s; received 0\.0"):
        fit([*profile(CPU, 20), Sample(Load(1), 0.0)])


# A column whose squares underflow is none.
NUMBERS = st.floats(-3, 3).map(lambda value: round(value, 6))


@settings(max_examples=200)
@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=3, max_size=8), st.integers(0, 999))
def test_no_other_non_negative_solution_is_better(rows: list[list[float]], seed: int) -> None:
    rng = random.Random(seed)
    right = [rng.uniform(-2, 2) for _ in rows]

    def error(x: list[float]) -> float:
        return sum(
            (sum(a * b for a, b in zip(row, x, strict=True)) - value) ** 2
            for row, value in zip(rows, right, strict=True)
        )

    found = solve(((row, value, 1.0) for row, value in zip(rows, right, strict=True)), 3)
    assert all(value >= 0 for value in found)
    least = error(found)
    for _ in range(100):
        other = [max(0.0, value + rng.gauss(0, 0.3)) for value in found]
        assert error(other) >= least - 1e-6


def test_columns_that_say_the_same_are_shared_out() -> None:
    [a, b] = solve([([1.0, 1.0], 2.0, 1.0), ([2.0, 2.0], 4.0, 1.0)], 2)
    assert a + b == pytest.approx(2.0)
    assert solve([([0.0, 1.0], -1.0, 1.0)], 2) == [0.0, 0.0]


def test_features_match_the_model() -> None:
    load = Load(3, 0, 500).plus(200, 120)
    values = dict(zip(TERMS, [0.03, 0.001, 0.0008, 0.006, 0.003, 2e-6, 4e-8, 1e-4], strict=True))
    model = CostModel.of(values, knee=50.0)
    for each in (load, load.plus(0, 7), Load(3, 0, 500)):
        terms = zip(features(each, 50.0), values.values(), strict=True)
        assert sum(a * b for a, b in terms) == pytest.approx(model.time(each))


def test_from_nothing_the_model_is_learned() -> None:
    fit_ = OnlineFit(guess())
    start = errors(fit_.model, profile(UNEVEN, seed=2))["all"]
    for sample in profile(UNEVEN, 800, noise=0.03, outliers=20):
        fit_.observe(sample.load, sample.seconds)
        if fit_.steps % 32 == 0:
            fit_.refit()
    assert errors(fit_.refit(), profile(UNEVEN, seed=2))["all"] < min(0.06, start / 3)


def test_a_guess_is_cautious_on_a_machine_that_hides_much() -> None:
    """After decodes alone prefill still counts as dear as guessed, relative to no prefill at all."""
    fit_ = OnlineFit(guess())
    for _ in range(64):
        fit_.observe(Load(4, 0, 2000), GPU.time(Load(4, 0, 2000)))
    model = fit_.refit()
    assert model.time(Load(4, 0, 2000)) == pytest.approx(GPU.time(Load(4, 0, 2000)), rel=0.1)
    assert model.time(Load(4, 64, 2000)) > GPU.time(Load(4, 64, 2000))
