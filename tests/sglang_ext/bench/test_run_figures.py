"""The arithmetic from recorded runs to figures, on runs computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from sglang_ext.bench.attainment import Attainment, ServiceLevels
from sglang_ext.bench.quantities import Values
from sglang_ext.bench.run_figures import Gaps, RunSet
from sglang_ext.bench.run_ratio import draw, ratio
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
    values = Values.of([[3.0, 1.0], [2.0, 4.0]])
    assert [values.percentile(share) for share in (0.0, 0.25, 0.5, 0.51, 0.95, 1.0)] == [1.0, 1.0, 2.0, 3.0, 4.0, 4.0]
    assert values.mean() == 2.5
    assert values.most == 4.0


def test_weights_count_whole_runs():
    values = Values.of([[3.0, 1.0], [2.0, 4.0]])
    twice = np.array([2, 0])
    assert values.mean(twice) == 2.0
    assert [values.percentile(share, twice) for share in (0.25, 0.5, 0.75, 1.0)] == [1.0, 1.0, 3.0, 3.0]
    once = np.array([1, 1])
    for share in (0.1, 0.25, 0.5, 0.9, 0.95, 1.0):
        assert values.percentile(share, once) == values.percentile(share)


def test_gaps_of_nothing():
    assert Gaps.of(Values.of([[], []])) is None


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


def p95(runs, weights):
    return runs.line.percentile(0.95, weights)


def test_ratio_of_an_arm_to_itself_has_no_doubt():
    runs = RunSet([[chain([1.0, 2.0]), chain([3.0], index=1)]], LEVELS)
    found = ratio(p95, runs, runs)
    assert found is not None
    assert (found.low, found.value, found.high) == (1.0, 1.0, 1.0)


def test_ratio_cancels_what_both_arms_share():
    slow = RunSet([[chain([2.0 * g], index=n) for n, g in enumerate((1.0, 5.0, 9.0, 2.0))]], LEVELS)
    fast = RunSet([[chain([g], index=n) for n, g in enumerate((1.0, 5.0, 9.0, 2.0))]], LEVELS)
    found = ratio(lambda runs, w: runs.line.mean(w), slow, fast)
    assert found is not None
    assert (found.low, found.value, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_interval_holds_the_value_and_shrinks_with_more_runs():
    def arms(number: int) -> tuple[RunSet, RunSet]:
        chance = np.random.default_rng(0)
        own = [chain([float(chance.exponential())], index=n) for n in range(number)]
        base = [chain([float(chance.exponential())], index=n) for n in range(number)]
        return RunSet([own], LEVELS), RunSet([base], LEVELS)

    few, many = (ratio(lambda r, w: r.line.mean(w), *arms(number)) for number in (10, 1000))
    assert few is not None and many is not None
    assert few.low < few.value < few.high
    assert many.high - many.low < (few.high - few.low) / 3


def test_draws_take_whole_repetitions():
    chance = np.random.default_rng(0)
    sizes = [3, 5, 2]
    emptied = 0
    for _ in range(50):
        weights = draw(sizes, chance)
        parts = np.split(weights, [3, 8])
        taken = [part.sum() // size for part, size in zip(parts, sizes, strict=True)]
        assert [part.sum() for part in parts] == [n * size for n, size in zip(taken, sizes, strict=True)]
        assert sum(taken) == 3
        emptied += 0 in taken
    assert emptied


def test_ratio_needs_the_same_runs():
    with pytest.raises(ValueError, match="different runs"):
        ratio(p95, RunSet([[chain([1.0])]], LEVELS), RunSet([[chain([1.0]), chain([1.0], index=1)]], LEVELS))


def test_ratio_to_nothing():
    runs = RunSet([[chain([1.0])]], LEVELS)
    assert ratio(lambda r, w: 0.0, runs, runs) is None
