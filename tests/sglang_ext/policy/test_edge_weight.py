"""The edge weight: what small pieces cost decides."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.edge_weight import WEIGHTS, EdgeWeights, edge_weight
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.steps import decode, prefill, snapshot
from tests.sglang_ext.policy.strategies import CPU, GPU, models

LOAD = Load(rows=4, kv=2000)


def chosen(model: CostModel, load: Load = LOAD, limit_s: float = math.inf, context: int = 500, **values: float) -> int:
    settings = {"share": 0.05, "piece_s": 0.0} | values
    return edge_weight(model, load, limit_s, context, **settings)


def test_the_smallest_piece_within_five_percent_of_a_large_one() -> None:
    # 0.1 ms per piece and 0.1 per token: 1 + 1 / w <= 1.05 x (1 + 1 / 256) from w = 18.5 on.
    model = CostModel(fixed=1.0, kv=2e-7, token=1e-4)
    assert chosen(model) == 32
    assert chosen(model, share=0.5) == 2


def test_what_the_scheduler_spends_on_a_piece_counts() -> None:
    assert chosen(GPU, piece_s=0.00025) > chosen(GPU)
    assert chosen(CPU, piece_s=0.00025) >= 4


def test_a_full_step_takes_larger_pieces() -> None:
    """In 40 ms only 20 tokens are free, in a second 500."""
    assert chosen(CostModel(fixed=0.04, kv=2e-7, token=1e-4)) == 64
    assert chosen(GPU, Load(rows=140, kv=2000), piece_s=0.00025) > chosen(GPU, piece_s=0.00025)


def test_the_slo_bounds_it() -> None:
    model = CostModel(fixed=0.04, token=0.001, prefill=0.010)
    assert chosen(model) == 64
    assert chosen(model, limit_s=0.0705) == 16
    assert chosen(model, limit_s=0.001) == 1


@given(models, st.integers(0, 64), st.integers(0, 2000), st.floats(0.001, 1.0))
def test_it_is_one_of_the_weights_and_fits_the_slo(model: CostModel, rows: int, context: int, limit_s: float) -> None:
    load = Load(rows, 0, rows * context)
    weight = chosen(model, load, limit_s, context, piece_s=0.00025)
    assert weight in WEIGHTS
    assert weight == 1 or model.time(load.plus(context, weight)) <= limit_s


def test_each_step_has_the_one_of_its_kind() -> None:
    times = StepTimes(GPU)
    weights = EdgeWeights(Configuration(), times)
    rows = [decode(f"d{i}", 500) for i in range(4)]
    load = Load.of(rows)
    first = weights.at(snapshot([], rows), load)
    assert first == weights.at(snapshot([], rows), load) > 1
    times.model = CostModel(fixed=0.04, token=0.001, prefill=0.010)
    assert weights.at(snapshot([], rows), load) == 64, "a new model, a new choice"
    tight = [decode("d", 500, tbt_s=0.06)]
    assert weights.at(snapshot([], tight), Load.of(tight)) == 8


@pytest.mark.parametrize("weight", [1, 48])
def test_a_weight_that_is_given_is_taken(weight: int) -> None:
    assert EdgeWeights(Configuration(weight=weight), StepTimes(GPU)).at(snapshot(), Load()) == weight
    off = Configuration(weight=weight, off=frozenset({"edge_weight"}))
    assert EdgeWeights(off, StepTimes(GPU)).at(snapshot(), Load()) == 1


def test_no_piece_need_be_larger_than_the_program_asks() -> None:
    ready = [prefill(f"p{weight}", 20, hops=1, rest_steps=5.0, weight=weight) for weight in (8, 20, 21)]
    seen = snapshot(ready, [decode("d", last_token_s=10.0)])
    plan = new_policy("deadline", Configuration(weight=32), StepTimes(GPU)).plan(seen)
    assert plan is not None
    assert [piece.rid for piece in plan.pieces] == ["p8", "p20"]
