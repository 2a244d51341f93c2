"""The arithmetic from recorded runs to figures, on runs computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from sglang_ext.bench.attainment import Attainment, ServiceLevels
from sglang_ext.bench.quantities import Values
from sglang_ext.bench.run_figures import Gaps, RunSet
from sglang_ext.bench.run_ratio import Figure, draws, ratio
from tests.sglang_ext.bench.recorded_runs import chain, run, task

LEVELS = ServiceLevels(ttft_s=2.0, tbt_s=3.0)
# Submitted at 10. a: 12 13 14; b and c read a and run side by side; d reads both.
DIAMOND = run(
    task("a", 12.0, 13.0, 14.0),
    task("b", 16.0, 17.0, upstream=["a"]),
    task("c", 15.0, 18.0, 19.0, upstream=["a"]),
    task("d", 23.0, 24.0, upstream=["b", "c"]),
    submitted=10.0,
)


def test_time_line_mixes_all_tasks():
    assert DIAMOND.line_gaps() == [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 4.0, 1.0]


def test_switches_count_from_the_upstream_that_ended_last():
    assert DIAMOND.switch_gaps() == [2.0, 1.0, 4.0]


def test_chains_are_not_thinned_out_by_parallel_branches():
    assert sorted(DIAMOND.chain_gaps()) == [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0]


def test_times_of_a_run():
    assert DIAMOND.first_token_s == 2.0
    assert DIAMOND.final_token_s == 13.0
    assert DIAMOND.completion_s == 14.0
    assert DIAMOND.tokens == 10


def test_final_answer_is_of_the_last_task_that_nobody_reads():
    two = run(task("a", 1.0), task("b", 5.0, upstream=["a"]), task("c", 3.0, upstream=["a"]))
    assert two.final_token_s == 3.0


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([("a", (), ())], "no token"),
        ([("a", (), (2.0, 1.0))], "decrease"),
        ([("b", ("a",), (2.0,)), ("a", (), (1.0,))], "before it"),
        ([], "one task"),
    ],
)
def test_what_is_no_run(tasks, said):
    with pytest.raises(ValidationError, match=said):
        run(*(task(name, *stamps, upstream=up) for name, up, stamps in tasks))


def test_percentiles_are_values_that_occurred():
    values = Values([[3.0, 1.0], [2.0, 4.0]])
    assert [values.percentile(share) for share in (0.0, 0.25, 0.5, 0.51, 0.95, 1.0)] == [1.0, 1.0, 2.0, 3.0, 4.0, 4.0]
    assert values.mean() == 2.5
    assert values.most == 4.0


def test_draws_count_whole_runs():
    values = Values([[3.0, 1.0], [2.0, 4.0], []])
    weights = np.array([[2.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 3.0]])
    assert values.drawn_means(weights)[:2].tolist() == [2.0, 2.5]
    assert np.isnan(values.drawn_means(weights)[2])
    assert values.drawn_percentiles(0.5, weights)[:2].tolist() == [1.0, 2.0]
    assert values.drawn_percentiles(0.75, weights)[:2].tolist() == [3.0, 3.0]
    assert np.isnan(values.drawn_percentiles(0.5, weights)[2])
    for share in (0.1, 0.25, 0.5, 0.9, 0.95, 1.0):
        assert values.drawn_percentiles(share, weights)[1] == values.percentile(share)


def test_percentiles_of_draws_are_right_for_many_values():
    chance = np.random.default_rng(0)
    by_run = [chance.exponential(size=100).tolist() for _ in range(200)]
    values, weights = Values(by_run), np.ones((1, 200))
    for share in (0.5, 0.95, 0.99):
        assert values.drawn_percentiles(share, weights)[0] == pytest.approx(values.percentile(share), rel=0.01)


def test_gaps_of_nothing():
    assert Gaps.of(Values([[], []])) is None


def test_figures_of_two_runs():
    runs = RunSet([[chain([1.0, 5.0], switch=2.0), chain([1.0, 1.0], index=1, switch=1.5)]], LEVELS)
    figures = runs.figures()
    assert figures.runs == 2
    assert figures.line is not None and figures.switch is not None and figures.worst is not None
    assert (figures.line.mean, figures.line.p50, figures.line.p95) == (pytest.approx(11.5 / 6), 1.0, 5.0)
    assert (figures.switch.p50, figures.switch.p95) == (1.5, 2.0)
    assert (figures.worst.p50, figures.worst.most) == (1.5, 5.0)
    assert figures.strict == 0.5
    # Mean gaps are 8/3 and 3.5/3; the 90th percentiles 5 and 1.5.
    assert figures.attained == {Attainment.MEAN: 1.0, Attainment.P90: 0.5, Attainment.STRICT: 0.5}
    assert (figures.ttft.p50, figures.final_ttft.most, figures.completion.most) == (1.0, 9.0, 9.0)
    assert figures.tokens_per_s == pytest.approx(8 / 9)
    assert figures.goodput == pytest.approx(2 / 9)


def test_time_of_several_repetitions_adds_up():
    once = RunSet([[chain([1.0])]], LEVELS).figures()
    twice = RunSet([[chain([1.0])], [chain([1.0])]], LEVELS).figures()
    assert once.tokens_per_s == twice.tokens_per_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("gaps", "first", "kept"),
    [
        ([1.0] * 9 + [9.0], 1.0, {Attainment.MEAN, Attainment.P90}),
        ([1.0] * 8 + [9.0, 9.0], 1.0, {Attainment.MEAN}),
        ([3.0, 3.0], 1.0, set(Attainment)),
        ([3.0, 3.0], 2.5, {Attainment.STRICT}),
        ([], 1.0, set(Attainment)),
    ],
)
def test_attainment_by_each_definition(gaps, first, kept):
    assert {by for by in Attainment if LEVELS.kept(chain(gaps, first=first), by)} == kept


MEAN, P95 = Figure("line"), Figure("line", 0.95)


def test_ratio_of_an_arm_to_itself_has_no_doubt():
    runs = RunSet([[chain([1.0, 2.0]), chain([3.0], index=1)]], LEVELS)
    for figure in (MEAN, P95):
        found = ratio(figure, runs, runs)
        assert found is not None
        assert (found.low, found.value, found.high) == (1.0, 1.0, 1.0)


def test_ratio_cancels_what_both_arms_share():
    slow = RunSet([[chain([2.0 * g], index=n) for n, g in enumerate((1.0, 5.0, 9.0, 2.0))]], LEVELS)
    fast = RunSet([[chain([g], index=n) for n, g in enumerate((1.0, 5.0, 9.0, 2.0))]], LEVELS)
    for figure in (MEAN, P95):
        found = ratio(figure, slow, fast)
        assert found is not None
        assert (found.low, found.value, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_interval_holds_the_value_and_shrinks_with_more_runs():
    def arms(number: int) -> tuple[RunSet, RunSet]:
        chance = np.random.default_rng(0)
        own = [chain([float(chance.exponential())], index=n) for n in range(number)]
        base = [chain([float(chance.exponential())], index=n) for n in range(number)]
        return RunSet([own], LEVELS), RunSet([base], LEVELS)

    few, many = (ratio(MEAN, *arms(number)) for number in (10, 1000))
    assert few is not None and many is not None
    assert few.low < few.value < few.high
    assert many.high - many.low < (few.high - few.low) / 3


def test_draws_take_whole_repetitions():
    sizes = (3, 5, 2)
    weights = draws(sizes, 50)
    assert np.array_equal(weights, draws(sizes, 50))
    missing = 0
    for draw in weights:
        parts = np.split(draw, [3, 8])
        taken = [part.sum() // size for part, size in zip(parts, sizes, strict=True)]
        assert [part.sum() for part in parts] == [n * size for n, size in zip(taken, sizes, strict=True)]
        assert sum(taken) == 3
        missing += 0 in taken
    assert missing


def test_ratio_needs_the_same_runs():
    with pytest.raises(ValueError, match="different runs"):
        ratio(P95, RunSet([[chain([1.0])]], LEVELS), RunSet([[chain([1.0]), chain([1.0], index=1)]], LEVELS))


def test_ratio_to_nothing():
    runs = RunSet([[chain([0.0])]], LEVELS)
    assert ratio(P95, runs, runs) is None
