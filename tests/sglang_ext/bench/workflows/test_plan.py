"""What is measured in which order, and how long that takes."""

from __future__ import annotations

from itertools import chain

import pytest

from sglang_ext.bench.workflows.arms import QUICK, ArmNames
from sglang_ext.bench.workflows.choice import Choice
from sglang_ext.bench.workflows.plan import (
    CALIBRATION_S,
    CLOSED,
    CLOSED_S,
    MODES,
    START_S,
    TAIL_S,
    TOGETHER,
    WARM_UP_S,
    Place,
    Stage,
    time_plan,
)

NAMES = ArmNames("deadline", 40, 3)
PLACES = (Place("search", "knee"), Place("search", "busy"))


def stage(repetitions, blocks, arms=QUICK):
    return Stage("some", NAMES.arms(arms), PLACES, repetitions, blocks)


@pytest.mark.parametrize(("repetitions", "blocks"), [(5, 2), (3, 1), (1, 3), (5, 5), (7, 3)])
def test_blocks_share_the_repetitions(repetitions, blocks):
    found = stage(repetitions, blocks).block_repetitions()
    assert list(chain.from_iterable(found)) == list(range(1, repetitions + 1))
    assert all(found) and len(found) == min(blocks, repetitions)
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_engines_that_are_alive_together_are_few():
    groups = stage(1, 1, ("stock", "grape")).groups()
    assert max(map(len, groups)) <= TOGETHER
    kinds = list(chain.from_iterable(groups))
    assert len(kinds) == len(set(kinds)) == 8


def test_time_counts_starts_and_cells():
    # Four arms on three engines.
    assert stage(5, 2).cells == 4 * 2 * 5
    assert stage(5, 2).estimate_s(20.0) == 2 * (3 * START_S + 4 * WARM_UP_S) + 40 * (20 + TAIL_S)
    closed = Stage("closed", NAMES.arms(QUICK), (Place("search", CLOSED),), 3)
    assert closed.estimate_s(20.0) == 3 * START_S + 4 * WARM_UP_S + 12 * CLOSED_S
    plan = time_plan([stage(5, 2)], 20.0, calibrated=False)
    assert [seconds for _, seconds in plan] == [CALIBRATION_S, stage(5, 2).estimate_s(20.0)]
    assert len(time_plan([stage(5, 2)], 20.0, calibrated=True)) == 1


def choice(name, **more):
    mode = MODES[name]
    return Choice(mode, NAMES, mode.workloads, mode.loads, mode.repetitions, **more)


@pytest.mark.parametrize("name", list(MODES))
def test_each_mode_fits_its_time(name):
    arms = {"arms": QUICK} if name == "quick" else {}
    stages = choice(name, **arms).all_stages()
    total = sum(seconds for _, seconds in time_plan(stages, MODES[name].seconds, calibrated=False))
    assert 0.5 * MODES[name].limit_s < total <= MODES[name].limit_s


def test_full_has_what_a_claim_needs():
    screen, main, *others = choice("full").all_stages()
    assert screen.name == "screen" and screen.cells == 14 * 3
    assert len(main.places) == 3 and main.repetitions == 5 and main.blocks > 1
    assert "grape" in [arm.name for arm in main.arms] and "default/plain" in [arm.name for arm in main.arms]
    assert [other.name for other in others] == ["ablations", "closed", "code", "summary"]


def test_quick_with_other_arms_and_loads():
    own = Choice(MODES["quick"], NAMES, ("code",), ("0.5", "knee"), 2, ("grape",))
    (only,) = own.all_stages()
    assert own.screen() is None
    assert only.places == (Place("code", "0.5"), Place("code", "knee"))
    assert [arm.name for arm in only.arms] == ["grape"]
