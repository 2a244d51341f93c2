"""The arithmetic from samples to verdicts."""

from __future__ import annotations

import pytest

from sglang_ext.bench.cell import summarise
from sglang_ext.bench.spread import Ratio, Spread
from sglang_ext.bench.verdict import judge
from tests.sglang_ext.bench.recorded import held, samples


def test_spread():
    spread = Spread.of([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (spread.q1, spread.median, spread.q3, spread.iqr) == (2.0, 3.0, 4.0, 2.0)
    assert Spread.of([7.0]) == Spread(median=7.0, q1=7.0, q3=7.0)


def test_ratio_is_one_without_doubt_where_every_pair_is_equal():
    assert Ratio.of([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]) == Ratio(value=1.0, low=1.0, high=1.0)


def test_ratio_interval_holds_its_value_and_is_the_same_each_time():
    values, baseline = [0.9, 1.1, 1.0, 1.3, 0.8, 1.0], [2.0, 2.1, 1.9, 2.2, 2.0, 2.0]
    ratio = Ratio.of(values, baseline)
    assert ratio.low < ratio.value < ratio.high
    assert ratio.value == pytest.approx(0.5)
    assert ratio == Ratio.of(values, baseline)


def test_ratio_resamples_pairs_so_that_common_noise_cancels():
    noise = [1.0, 5.0, 2.0, 9.0, 3.0, 7.0]
    ratio = Ratio.of([2 * n for n in noise], noise)
    assert (ratio.low, ratio.value, ratio.high) == (2.0, 2.0, 2.0)


def test_cell_takes_the_best_stock_arm_of_each_figure():
    cell = summarise(
        256,
        32,
        {
            "on": [held(0.06, 3.0), held(0.07, 3.1), held(0.08, 3.2)],
            "off": samples([0.01, 0.01, 0.01], [1.0, 1.0, 1.0]),  # not stock, so never the baseline
            "plain": samples([0.5, 0.6, 0.7], [3.0, 3.2, 3.3], step=0.04),
            "prewarm": samples([0.1, 0.14, 0.2], [3.4, 3.5, 3.6]),
        },
    )
    assert (cell.best_gap, cell.best_completion) == ("prewarm", "plain")
    assert (cell.step_s, cell.step_arm) == (0.04, "plain")
    on = cell.arms["on"]
    assert on.gap_steps == pytest.approx(0.07 / 0.04)
    assert on.gap_ratio.value == pytest.approx(0.5)
    assert on.completion_ratio.value == pytest.approx(3.1 / 3.2)
    assert cell.arms["plain"].completion_ratio.value == 1.0


def test_cell_without_stock_has_no_ratio():
    cell = summarise(0, 32, {"on": samples([0.1], [1.0]), "off": samples([0.2], [1.1])})
    assert cell.best_gap is None
    assert cell.step_arm == "off"
    assert cell.arms["on"].gap_ratio is None
    assert [verdict.met for verdict in judge([cell])] == [None, None]


@pytest.mark.parametrize(("gap", "met"), [(0.075, True), (0.0751, False)])
def test_gap_goal(gap, met):
    cell = summarise(1024, 256, {"on": samples([gap], [1.0]), "plain": samples([0.5], [1.0], step=0.05)})
    assert judge([cell])[0].met is met


def test_gap_goal_is_about_one_shape():
    cell = summarise(1024, 32, {"on": samples([0.01], [1.0]), "plain": samples([0.5], [1.0])})
    assert judge([cell])[0].met is None


@pytest.mark.parametrize(("behind", "met"), [(-1.0, True), (0.1, True), (0.11, False)])
def test_completion_goal_allows_the_best_stock_arms_spread(behind, met):
    stock = [3.0, 3.05, 3.1, 3.15, 3.2]  # quartiles 0.1 apart
    good = summarise(0, 32, {"on": samples([0.1] * 5, [2.0] * 5), "plain": samples([0.5] * 5, stock)})
    cell = summarise(0, 256, {"on": samples([0.1] * 5, [3.1 + behind] * 5), "plain": samples([0.5] * 5, stock)})
    verdict = judge([good, cell])[1]
    assert verdict.met is met
    assert ("256 streamed" in verdict.found) is not met
