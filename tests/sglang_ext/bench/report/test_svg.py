"""Axes and shapes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.bench.report.svg import Axis, Canvas

values = st.lists(st.floats(1e-4, 1e6), min_size=1, max_size=20)


@given(values, st.booleans())
def test_values_stand_in_their_order_on_an_axis_with_round_ticks(given_values, log):
    axis = Axis.around(given_values, 10, 110, log)
    places = [axis.at(value) for value in sorted(given_values)]
    assert all(10 <= place <= 110 for place in places)
    assert all(a <= b for a, b in pairwise(places))
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 12
    assert all(axis.low <= tick <= axis.high * (1 + 1e-9) for tick in ticks)
    assert all(a < b for a, b in pairwise(ticks))


def test_an_axis_by_factors():
    axis = Axis(1, 100, 0, 200, log=True)
    assert axis.at(10) == pytest.approx(100)
    assert axis.at(0) == 0 and axis.at(1000) == 200
    assert [round(tick) for tick in axis.ticks()] == [1, 2, 5, 10, 20, 50, 100]


def test_texts_are_escaped():
    canvas = Canvas(10, 10, 'a "label" <b>')
    canvas.text(1, 2, "<a> & b")
    canvas.mark(1, 2, 0, "mark", "<tip>")
    assert "<a>" not in canvas.svg() and "<b>" not in canvas.svg() and "<tip>" not in canvas.svg()
    assert "&lt;a&gt; &amp; b" in canvas.svg()


def test_points_have_shapes_of_their_own():
    shapes = []
    for number in range(5):
        canvas = Canvas(10, 10, "")
        canvas.mark(5, 5, number, "mark", "")
        shapes.append(canvas.svg())
    assert len(set(shapes)) == 5
