"""The fluid limit on steps computed by hand."""

from __future__ import annotations

import pytest

from sglang_ext.bench.fluid import FluidLimit
from sglang_ext.bench.recorded_step import RecordedStep
from sglang_ext.policy.cost_model import CostModel

COST = CostModel(fixed=1.0, token=0.1)


def steps(*parts: tuple[float, int, int, int]) -> list[RecordedStep]:
    """Each (start, rows, tokens, waiting)."""
    return [RecordedStep(start, start + 1.0, rows, tokens, 0, 0.0, waiting) for start, rows, tokens, waiting in parts]


def test_prefill_is_spread_over_the_decodes_of_its_window():
    found = FluidLimit.of(steps((0.0, 1, 0, 0), (1.0, 0, 40, 1), (2.0, 1, 0, 0)), COST)
    assert found is not None
    assert (found.mean, found.p95) == pytest.approx((3.0, 3.0))


def test_prefill_that_held_up_nothing_does_not_count():
    found = FluidLimit.of(steps((0.0, 0, 1000, 0), (1.0, 1, 0, 0)), COST)
    assert found is not None
    assert found.p95 == pytest.approx(1.0)


def test_windows_are_apart():
    found = FluidLimit.of(steps((0.0, 1, 10, 0), (25.0, 1, 0, 0), (26.0, 1, 0, 0)), COST)
    assert found is not None
    assert found.mean == pytest.approx((2.0 + 1.0 + 1.0) / 3)
    assert (found.p50, found.p99) == pytest.approx((1.0, 2.0))


def test_a_gap_counts_once_for_each_row():
    found = FluidLimit.of(steps((0.0, 3, 10, 0), (30.0, 1, 0, 0)), COST)
    assert found is not None
    assert found.mean == pytest.approx((3 * 2.0 + 1.0) / 4)


def test_nothing_decoded():
    assert FluidLimit.of(steps((0.0, 0, 10, 0)), COST) is None
