"""What is kept of prompts from step to step is what a look at all of them would tell."""

from __future__ import annotations

from typing import Any

import pytest

from sglang_ext.engine.told_prompts import ToldPrompts
from tests.engine.stepped import Stepped, chain


def told(prompts: ToldPrompts) -> tuple[set[Any], set[Any], int]:
    """Without what may be some steps old: expectations, and how long a prompt has waited."""
    ready = {(p.rid, p.run, p.order, p.pending, p.context, p.has_row, p.complete) for p in prompts.ready(())}
    return ready, {(h.rid, h.tokens, h.order, h.complete, h.hops) for h in prompts.holding()}, prompts.rows


def told_anew(stepped: Stepped) -> tuple[set[Any], set[Any], int]:
    """By one who has never looked before."""
    held = stepped.held
    fresh = ToldPrompts(held)
    until = {req: req.told_until for req in (*held.growing.values(), *held.cut.values())}
    for req in until:
        fresh.changed(req)
    found = told(fresh)
    for req, step in until.items():
        req.told_until = step
    return found


@pytest.mark.parametrize("policy", ["budget", "deadline", "paper"])
def test_what_is_kept_is_what_there_is(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    stepped = Stepped(monkeypatch, 6, policy=policy, max_held_rows=12, slo_ttft="40x", slo_tbt="3x")
    compared = 0

    def checked(decide: Any) -> None:
        nonlocal compared
        decide()
        kept = told(stepped.held.told)
        assert kept == told_anew(stepped)
        compared += bool(kept[0]) and bool(kept[1])

    stepped.decided = checked
    for number in range(12):
        stepped.submit(chain(3, 40 + number, 30, 50 * number))
    while stepped.held.requests:
        stepped.step()
        assert stepped.arrivals == 36 and stepped.held.step < 2000
    assert compared > 30
    assert stepped.held.counts() == dict.fromkeys(stepped.held.counts(), 0)
    assert told(stepped.held.told) == (set(), set(), 0)


def test_a_prompt_that_a_stream_waits_for_is_due_by_the_time_between_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped = Stepped(monkeypatch, 4, policy="paper", slo_ttft="40x", slo_tbt="3x")
    stepped.submit(chain(2, 900, 3, 1))
    due: dict[bool, set[float]] = {False: set(), True: set()}
    bounds: set[tuple[float | None, float | None]] = set()
    while stepped.held.requests:
        stepped.step()
        bounds.add(stepped.held.objectives.usual)
        for prompt in stepped.held.told.ready(stepped.scheduler.waiting_queue):
            if prompt.complete and prompt.deadline_s is not None:
                due[prompt.stalled].add(round(prompt.deadline_s - prompt.since_s, 6))
    assert due[False] <= {round(ttft, 6) for ttft, _ in bounds if ttft}
    assert due[True] <= {round(tbt, 6) for _, tbt in bounds if tbt}
    assert due[False] and due[True]
