"""F: its terms, the ridge, the room below a limit, and its plain form."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.policy.cost_model import CostModel, Load
from tests.sglang_ext.policy.steps import decode
from tests.sglang_ext.policy.strategies import CPU, GPU, models

MODEL = CostModel(
    fixed=1.0,
    row=0.1,
    token=0.01,
    prefill=0.5,
    piece=0.25,
    kv=0.001,
    attention=1e-4,
    knee=10.0,
    beyond=0.02,
    errors={"all": 0.1},
)
loads = st.builds(Load, st.integers(0, 64), st.just(0), st.integers(0, 30_000))


def test_the_terms_by_hand() -> None:
    assert MODEL.time(Load()) == 1.0
    assert MODEL.time(Load(rows=3, kv=200)) == pytest.approx(1.0 + 0.3 + 0.2)
    # 20 tokens behind 100: attention 20 x 110; 23 tokens are 13 beyond the knee.
    expected = 1.0 + 0.3 + 0.001 * 300 + 0.5 + 0.25 + 0.2 + 1e-4 * 2200 + 0.02 * 13
    assert MODEL.predict([decode("a", 50), decode("b", 50), decode("c", 100)], [(100, 20)]) == pytest.approx(expected)
    assert MODEL.decode_step() == pytest.approx(1.1)


def test_a_piece_in_two_parts_weighs_as_one() -> None:
    whole = Load(rows=2, kv=70).plus(100, 30)
    parts = Load(rows=2, kv=70).plus(100, 12).plus(100, 18, given=12)
    assert parts.pieces == whole.pieces == 1
    assert (parts.rows, parts.tokens, parts.kv) == (whole.rows, whole.tokens, whole.kv) == (2, 30, 170)
    assert parts.attention == pytest.approx(whole.attention)


def test_regimes() -> None:
    assert [Load(rows=1).regime, Load(1, 1).regime, Load(0, 1).regime] == ["decode", "mixed", "prefill"]


def test_the_ridge() -> None:
    # 5% of 11.7 ms beyond the knee of 140 tokens, at 80 us each, are 7.
    assert GPU.ridge(Load(rows=4), 0.05, 2048) == 140 - 4 + 7
    assert GPU.ridge(Load(rows=4), 0.05, 64) == 64
    assert CPU.ridge(Load(rows=1), 0.05, 2048) == 1, "next to nothing where all is additive"
    assert CostModel(fixed=1.0, token=0.1).ridge(Load(rows=1), 0.05, 2048) == 0


@given(models, loads, st.integers(0, 2000), st.floats(0, 1), st.integers(0, 600), st.integers(0, 50))
def test_room_is_the_most_that_fits(
    model: CostModel, load: Load, context: int, limit: float, most: int, given: int
) -> None:
    room = model.room(load, context, limit, most, given)
    assert 0 <= room <= most
    assert not room or model.time(load.plus(context, room, given)) <= limit
    assert room == most or model.time(load.plus(context, room + 1, given)) > limit


@given(models, loads, st.integers(0, 2000), st.integers(1, 600))
def test_more_is_never_quicker(model: CostModel, load: Load, context: int, tokens: int) -> None:
    assert model.time(load) <= model.time(load.plus(context, tokens)) <= model.time(load.plus(context, tokens + 1))


def test_the_plain_form_is_json_and_comes_back() -> None:
    assert CostModel.from_dict(json.loads(json.dumps(MODEL.as_dict()))) == MODEL
    with pytest.raises(ValueError, match=r"token is -1; it takes a number of at least 0"):
        CostModel.from_dict({"fixed": 1.0, "token": -1})
    with pytest.raises(ValueError, match="fixed is nan"):
        CostModel.from_dict({"fixed": math.nan})
    with pytest.raises(TypeError):
        CostModel.from_dict({"fixed": 1.0, "tokens": 1})
