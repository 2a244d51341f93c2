"""Steps under the profiler, and the groups that their operations are told by."""

from __future__ import annotations

import pytest

from sglang_ext.bench.step_profile import (
    BETWEEN,
    ELEMENTWISE,
    GATHER,
    HEAD,
    LINEAR,
    OTHER,
    PRODUCTS,
    SAMPLING,
    SCHEDULER,
    WRITE,
    OperationTime,
    RawProfile,
    StepProfile,
    group_of,
)

pytest.importorskip("torch")

import torch

from sglang_ext.bench.step_profiler import PLAIN, PROFILED, WARM, StepProfiler

VOCABULARY = 1000


def operation(name, *shapes, calls=1.0, seconds=0.001):
    return OperationTime(name=name, shapes=[list(shape) for shape in shapes], calls=calls, seconds=seconds)


@pytest.mark.parametrize(
    ("group", "name", "shapes"),
    [
        (LINEAR, "mkldnn::_linear_pointwise", [(4, 64), (96, 64), ()]),
        (HEAD, "mkldnn::_linear_pointwise", [(4, 64), (VOCABULARY, 64), ()]),
        (HEAD, "aten::mm", [(4, 64), (64, 1024)]),
        (GATHER, "aten::index_select", [(9000, 64), (), (300,)]),
        (PRODUCTS, "aten::bmm", [(6, 3, 64), (6, 64, 128)]),
        (PRODUCTS, "aten::_scaled_dot_product_flash_attention_for_cpu", [(1, 4, 1, 64)]),
        (PRODUCTS, "aten::add_", [(6, 3, 128), (6, 1, 128)]),
        (PRODUCTS, "aten::mul", [(4, 3, 3, 64), ()]),
        (WRITE, "aten::index_copy_", [(9000, 3, 64), (), (4,), (4, 3, 64)]),
        (ELEMENTWISE, "aten::add_", [(4, 64), (4, 64)]),
        (ELEMENTWISE, "aten::roll", [(4, 12, 64)]),
        (ELEMENTWISE, "aten::silu", [(4, 96)]),
        (ELEMENTWISE, "aten::native_layer_norm", [(4, 128)]),
        (SAMPLING, "aten::argmax", [(4, VOCABULARY)]),
        (OTHER, "aten::empty", []),
        (OTHER, "aten::slice", [(8192,), ()]),
        (OTHER, "aten::index", [(2113,), ()]),
        (BETWEEN, "step[DECODE bs=4]", []),
        (SCHEDULER, "scheduler.run_batch", []),
        (OTHER, "aten::embedding", [(VOCABULARY, 64), (4,)]),
    ],
)
def test_groups(group, name, shapes):
    assert group_of(operation(name, *shapes), VOCABULARY) == group


def test_groups_add_up_to_the_step():
    raw = RawProfile(
        batch=4,
        plain_s=0.008,
        step_s=0.01,
        operations=[
            operation("aten::bmm", (6, 3, 64), calls=2, seconds=0.001),
            operation("aten::softmax", (6, 3, 64), seconds=0.002),
            operation("aten::mm", (4, 64), (64, 64), seconds=0.004),
            operation("step[DECODE bs=4]", seconds=0.0005),
        ],
    )
    profile = StepProfile.of(raw, VOCABULARY)
    assert [group.group for group in profile.groups] == [LINEAR, PRODUCTS, SCHEDULER, BETWEEN]
    assert sum(group.seconds for group in profile.groups) == pytest.approx(0.01)
    assert sum(group.share for group in profile.groups) == pytest.approx(1)
    assert profile.groups[1].calls == 3
    assert profile.groups[1].largest == ["softmax", "bmm"]
    assert profile.groups[2].seconds == pytest.approx(0.0025)
    assert [each.name for each in profile.operations[:3]] == ["aten::mm", "aten::softmax", "aten::bmm"]


def launches(profiler, *batches):
    """Each launch followed by one product; returns what was profiled."""
    left, right = torch.ones(8, 8), torch.ones(8, 8)
    found = []
    for number, batch in enumerate(batches):
        raw = profiler.step(float(number), batch)
        if raw is not None:
            found.append(raw)
        torch.mm(left, right)
    return found


def test_profiles_each_size_once():
    whole = WARM + PLAIN + PROFILED + 1
    found = launches(StepProfiler([2, 3]), *[2] * (2 * whole), *[3] * whole, *[2] * whole)
    assert [raw.batch for raw in found] == [2, 3]
    for raw in found:
        assert raw.plain_s == 1.0
        (product,) = [each for each in raw.operations if each.name == "aten::mm"]
        assert product.calls == 1.0
        assert product.shapes == [[8, 8], [8, 8]]
        assert 0 < product.seconds < 0.1


def test_a_batch_that_changes_begins_again():
    almost = WARM + PLAIN + PROFILED
    assert launches(StepProfiler([2]), *[2] * almost, 0, *[2] * almost, 3) == []
    assert len(launches(StepProfiler([2]), *[2] * almost, 0, *[2] * (almost + 1))) == 1
