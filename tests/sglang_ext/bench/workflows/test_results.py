"""From cells to figures, the settings that a screen keeps, and the goals."""

from __future__ import annotations

import pytest

from sglang_ext.bench.load_result import LoadResult, with_default
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.workflows.arms import ArmNames
from sglang_ext.bench.workflows.goals import judge
from sglang_ext.bench.workflows.record import WorkloadResult
from sglang_ext.bench.workflows.results import Results, kept
from sglang_ext.driver.errors import EngineError
from tests.sglang_ext.bench.workflows.cells import CALIBRATION, cell

NAMES = ("grape", "default/plain", "mixed-128/plain", "mixed-128/prewarm")
ARMS = {name: ArmNames("deadline", 40, 3).arm(name) for name in NAMES}


def result(**gaps: tuple[float, float]) -> LoadResult:
    """Args: gaps: of each arm the gap inside tasks and at the switch."""
    arms = dict(zip(NAMES, gaps.values(), strict=False))
    cells = {
        name: [cell(name, repetition=n, gaps=(inside, inside), switch=switch) for n in (1, 2)]
        for name, (inside, switch) in arms.items()
    }
    return Results(CALIBRATION, Slo(4.0, 0.3), ARMS).load(cells, "knee", 0.5)


def test_figures_and_ratios_of_cells():
    found = result(grape=(0.1, 0.2), default=(0.4, 1.0), mixed=(0.1, 0.8), prewarm=(0.2, 0.4))
    grape = found.arms["grape"]
    assert grape.figures.runs == 4
    assert grape.kv_high == pytest.approx(0.1)
    assert grape.interference == pytest.approx(2 * 2 / 4)
    assert grape.computed_share == pytest.approx(50 / 80)
    assert grape.ratios["plain"]["switch P95"].value == pytest.approx(0.2 / 0.8)
    assert grape.ratios["prewarm"]["switch P95"].value == pytest.approx(0.5)
    assert grape.ratios["default"]["gap P95"].value == pytest.approx(0.2 / 1.0)
    assert found.arms["default/plain"].ratios == {}


def test_what_only_an_engine_has():
    arms = {"grape": [cell("grape")], "default/plain": [cell("default/plain", outputs=("one", "other"))]}
    found = Results(CALIBRATION, Slo(4.0, 0.3), ARMS).load(arms, "knee", 0.5)
    engine = found.arms["grape"].engine
    assert engine is not None
    assert engine.plan_share == pytest.approx(0.005 / 0.5)
    assert engine.matrix_share == pytest.approx(1e9 / 0.5 / 4e10)
    assert engine.again_share == pytest.approx(10 / 40)
    assert engine.late.p50 == 0.002
    assert engine.client_share == pytest.approx(0.05)
    assert engine.others == pytest.approx(0.25)
    assert engine.same_output is None
    other = found.arms["default/plain"].engine
    assert other is not None and other.same_output == 0.5


def test_arms_with_other_prompts_cannot_be_compared():
    arms = {"grape": [cell("grape")], "default/plain": [cell("default/plain", prompts="others")]}
    with pytest.raises(EngineError, match="'default/plain' was given other runs than 'grape'"):
        Results(CALIBRATION, Slo(4.0, 0.3), ARMS).load(arms, "knee", 0.5)


def test_a_screen_keeps_what_is_best_of_something():
    found = result(grape=(0.1, 0.2), default=(0.4, 1.0), mixed=(0.1, 0.8), prewarm=(0.2, 0.4))
    left = kept(found)
    assert set(left) == {"mixed-128/plain", "mixed-128/prewarm"}
    assert with_default(left)[0] == "default/plain"
    assert with_default(["default/plain"]) == ["default/plain"]


def test_goals_list_their_loads_and_stay_open_without_one():
    found = result(grape=(0.1, 0.2), default=(0.4, 1.0), mixed=(0.1, 0.8), prewarm=(0.2, 0.4))
    verdicts = {
        v.goal: v for v in judge([WorkloadResult(workload="search", screen=None, kept=[], loads=[found])], "grape")
    }
    switch = next(v for goal, v in verdicts.items() if "best viable plain client" in goal)
    assert switch.met is True
    assert switch.found.startswith("search knee: 0.25 [")
    strict = next(v for goal, v in verdicts.items() if "within the level" in goal)
    assert strict.met is True and "100% (best stock 0%)" in strict.found
    closed = next(v for goal, v in verdicts.items() if goal.startswith("tokens/s"))
    assert closed.met is None and closed.found == "open"
    fluid = next(v for goal, v in verdicts.items() if "fluid" in goal)
    assert fluid.met is False


def test_a_goal_that_is_missed_at_one_load_is_missed():
    good = result(grape=(0.1, 0.2), default=(0.4, 1.0), mixed=(0.1, 0.8))
    bad = result(grape=(0.1, 0.7), default=(0.4, 1.0), mixed=(0.1, 0.8)).model_copy(update={"load": "busy"})
    loads = [WorkloadResult(workload="search", screen=None, kept=[], loads=[good, bad])]
    switch = judge(loads, "grape")[0]
    assert switch.met is False
    assert "knee: 0.25" in switch.found and "busy: 0.88" in switch.found
