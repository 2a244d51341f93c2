"""The arithmetic of two arms' answers, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.bench.numerics.answers import Answer
from sglang_ext.bench.numerics.pair import Pair, Share, compare, flip_ratio


def answer(*ids: int, **top: float) -> Answer:
    return Answer(ids=list(ids), top={int(name[1:]): logprob for name, logprob in top.items()})


def test_what_differs_and_where():
    own = [answer(1, 2, 3), answer(1, 2, 3), answer(1, 2, 3), answer(5, 2, 3)]
    others = [answer(1, 2, 3), answer(1, 2, 4), answer(1, 9, 3), answer(1, 2, 3)]
    for given_answer in (*own, *others):
        given_answer.top.update({1: -1.0, 5: -1.5})
    pair = compare("a", "b", own, others)
    assert (pair.first_token.count, pair.output.count, pair.output.of) == (1, 3, 4)
    assert pair.where == 1
    assert pair.widest_tie == pytest.approx(0.5)


def test_answers_that_are_alike():
    own = [answer(1, 2, t1=-0.5)]
    pair = compare("a", "b", own, own)
    assert pair.first_token.count == pair.output.count == 0
    assert pair.where is None and pair.widest_tie is None
    assert pair.logprobs.most == 0


def test_logprobs_of_tokens_that_both_have():
    own = [answer(1, t1=-0.5, t2=-1.0, t3=-2.0), answer(1, t1=-0.5)]
    others = [answer(1, t1=-0.6, t2=-1.3, t4=-9.0), answer(1, t1=-0.5)]
    apart = compare("a", "b", own, others).logprobs
    assert apart.most == apart.p95 == pytest.approx(0.3)
    assert apart.p50 == 0
    assert apart.mean == pytest.approx(0.15)


def test_a_tie_that_was_none_survives_the_record():
    pair = compare("a", "b", [answer(7, t7=-0.1)], [answer(1, t1=-0.1)])
    assert pair.widest_tie == float("inf")
    assert Pair.model_validate_json(pair.model_dump_json()) == pair


def test_wilson_interval_of_a_share():
    share = Share.count_of([True] * 10 + [False] * 90)
    assert share.value == pytest.approx(0.1)
    assert (share.low, share.high) == (pytest.approx(0.0552, abs=1e-4), pytest.approx(0.1744, abs=1e-4))
    assert Share.count_of([False] * 200).high == pytest.approx(0.0188, abs=1e-4)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_a_share_is_inside_its_interval(flags):
    share = Share.count_of(flags)
    assert 0 <= share.low <= share.value + 1e-9 and share.value <= share.high + 1e-9 <= 1 + 1e-8


def test_ratio_of_rates():
    flags, baseline = [True] * 20 + [False] * 80, [False] * 60 + [True] * 40
    ratio = flip_ratio(flags, baseline)
    assert ratio is not None
    assert ratio.value == 0.5
    assert 0.25 < ratio.low < 0.5 < ratio.high < 0.9
    assert flip_ratio(flags, baseline) == ratio
    assert flip_ratio(flags, [False] * 100) is None


def test_a_ratio_to_itself_is_one():
    flags = [True, False, False, True, False]
    ratio = flip_ratio(flags, flags)
    assert ratio is not None and ratio.value == ratio.low == ratio.high == 1
