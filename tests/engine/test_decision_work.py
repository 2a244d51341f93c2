"""What a step's decisions cost, in operations: they go by what decodes and what changed, not by all that waits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from sglang_ext.policy.snapshot import Plan, Snapshot
from sglang_ext.policy.step_times import REFIT
from tests.engine.stepped import WEIGHT, Stepped, chain

POLICIES = ("budget", "deadline", "paper")
OBJECTIVES = {"slo_ttft": "40x", "slo_tbt": "3x"}
# As many steps as the cost model is fitted anew after, so that each count has one fit.
ROWS, STEPS = 8, REFIT
# Bytecodes of a step beside 8 rows and their readers, for each row more, its reader's pieces included, and for each
# task more that waits: as they are now, and a good part more. All ready prompts count in what `deadline` asks for.
FOR_STEP, FOR_ROW, FOR_WAITING = 14_000, 800, {"budget": 5, "deadline": 20, "paper": 5}


class Counter:
    """Counts the bytecodes that Python runs."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, work: Callable[[], None]) -> None:
        sys.settrace(self._enter)
        try:
            work()
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._count

    def _count(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.count += event == "opcode"
        return self._count


def operations(monkeypatch: pytest.MonkeyPatch, policy: str, tasks: int, rows: int = ROWS) -> float:
    """Bytecodes of the decisions of a step in which each run's first task decodes and all behind it wait.

    Args:
        tasks: of each run, one behind the other.
    """
    stepped = Stepped(monkeypatch, rows, policy=policy, max_held_rows=1000, **OBJECTIVES)
    for number in range(rows):
        stepped.submit(chain(tasks, 24, 4000, 100 * number))
    while any(prefill.context == 0 for prefill in stepped.held.told.ready(())) or len(stepped.running) < rows:
        stepped.step()
    # Until what is told for a while only is told in each step's turn.
    for _ in range(40):
        stepped.step()
    assert len(stepped.held.growing) == rows * (tasks - 1)
    counter = Counter()
    stepped.decided = counter
    for _ in range(STEPS):
        stepped.step()
    return counter.count / STEPS


@pytest.mark.parametrize("policy", POLICIES)
def test_work_does_not_grow_with_what_waits(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    few, many = operations(monkeypatch, policy, 3), operations(monkeypatch, policy, 30)
    print(f"\n{policy}: {few:.0f} operations beside 16 waiting tasks, {many:.0f} beside 232")
    assert many - few < FOR_WAITING[policy] * (232 - 16)


@pytest.mark.parametrize("policy", POLICIES)
def test_work_per_decoding_row_is_bounded(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    few, many = operations(monkeypatch, policy, 2, 8), operations(monkeypatch, policy, 2, 24)
    print(f"\n{policy}: {few:.0f} operations beside 8 rows, {many:.0f} beside 24: {(many - few) / 16:.0f} per row")
    assert (many - few) / 16 < FOR_ROW
    assert few < FOR_STEP


@pytest.mark.parametrize("policy", ["deadline", "paper"])
def test_a_policy_is_asked_where_there_is_something_to_decide(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """While an output grows by less than a piece, each step is the one before."""
    stepped = Stepped(monkeypatch, 1, policy=policy, **OBJECTIVES)
    _, reader = stepped.submit(chain(2, 24, 200, 0))
    planner, asked = stepped.held.planner, 0
    plan = planner.policy.plan

    def count(snapshot: Snapshot) -> Plan | None:
        nonlocal asked
        asked += 1
        return plan(snapshot)

    monkeypatch.setattr(planner.policy, "plan", count)
    for _ in range(STEPS):
        stepped.step()
    asked, known = 0, len(reader.task.prompt)
    for _ in range(4 * WEIGHT):
        stepped.step()
    assert len(reader.task.prompt) - known >= 3 * WEIGHT
    assert reader.prefix_len >= len(reader.task.prompt) - 2 * WEIGHT
    assert 3 <= asked <= 3 * 4
