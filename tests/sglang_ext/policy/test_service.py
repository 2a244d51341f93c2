"""Everything is served within its bound: steps are played with the plans of each policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.policy import Policy
from sglang_ext.policy.snapshot import Decode, Prefill
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.steps import complete, snapshot
from tests.sglang_ext.policy.strategies import CPU, GPU


@dataclass
class Play:
    """Steps of an engine with some decodes that never end. Args: tbt_s: their SLO."""

    policy: Policy
    model: CostModel
    tbt_s: float | None
    rows: int = 2
    now_s: float = 10.0
    ready: dict[str, Prefill] = field(default_factory=dict)
    last_s: float = 10.0

    def arrive(self, prefill: Prefill) -> None:
        self.ready[prefill.rid] = replace(prefill, since_s=self.now_s)

    def step(self) -> dict[str, int]:
        """One step; returns the tokens that each prompt got."""
        rows = [Decode(f"d{i}", f"d{i}", 100, self.last_s, self.tbt_s) for i in range(self.rows)]
        seen = snapshot(sorted(self.ready.values(), key=lambda each: each.order), rows, now_s=self.now_s)
        plan = self.policy.plan(seen)
        assert plan is not None
        pieces = {piece.rid: piece.tokens for piece in plan.pieces}
        load = Load.of(rows, ((self.ready[rid].context, tokens) for rid, tokens in pieces.items()))
        self.now_s += self.model.time(load)
        self.last_s = self.now_s
        for rid, prefill in list(self.ready.items()):
            tokens = pieces.get(rid, 0)
            if tokens == prefill.pending:
                del self.ready[rid]
                continue
            self.ready[rid] = replace(
                prefill,
                pending=prefill.pending - tokens,
                context=prefill.context + tokens,
                has_row=prefill.has_row or tokens > 0,
                waited=0 if tokens else prefill.waited + 1,
            )
        return pieces


def play(name: str, tbt_s: float | None, model: CostModel = CPU, **values: int) -> Play:
    return Play(new_policy(name, Configuration(**values), StepTimes(model)), model, tbt_s)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["paper", "deadline"]),
    lengths=st.lists(st.integers(1, 16), min_size=1, max_size=8),
    every=st.integers(1, 4),
    stalled=st.booleans(),
)
def test_with_an_slo_of_a_millisecond_each_is_served_in_turn(
    name: str, lengths: list[int], every: int, stalled: bool
) -> None:
    """R micro-tasks of at most q tokens, and the due of one in m steps: r is 1 / m."""
    engine = play(name, 0.001, grant_every=every)
    for order, tokens in enumerate(lengths):
        engine.arrive(complete(f"p{order}", tokens, order, stalled=stalled))
    served = [rid for _ in range(every * len(lengths) + every) for rid in engine.step()]
    assert served == [f"p{i}" for i in range(len(lengths))]


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(["paper", "deadline"]),
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=5),
    every=st.integers(1, 3),
)
def test_long_prompts_get_q_tokens_in_every_m_steps(name: str, lengths: list[int], every: int) -> None:
    engine = play(name, 0.001, grant_every=every)
    for order, tokens in enumerate(lengths):
        engine.arrive(complete(f"p{order}", tokens, order))
    bound = every * sum(math.ceil(tokens / 16) for tokens in lengths) + every
    for _ in range(bound):
        engine.step()
    assert not engine.ready


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 12), room=st.integers(1, 4), stalled=st.booleans())
def test_with_room_for_r_each_of_them_is_served_in_turn(count: int, room: int, stalled: bool) -> None:
    """R prompts of 16 tokens, and an SLO with room for r of them: within ceil(R / r) + m steps."""
    decodes = CPU.time(Load(rows=2))
    engine = play("paper", decodes + room * 16 * CPU.token + 1e-6)
    for order in range(count):
        engine.arrive(complete(f"p{order}", 16, order, stalled=stalled))
    for _ in range(math.ceil(count / room) + 2):
        engine.step()
    assert not engine.ready


def chains(every: int) -> Iterator[Prefill | None]:
    """Short prompts of short chains, each more urgent than anything long, without an end."""
    order = 100
    while True:
        for step in range(every):
            order += 1
            yield complete(f"s{order}", 30, order, stalled=True) if step == 0 else None


@pytest.mark.parametrize("name", ["paper", "deadline", "budget"])
@pytest.mark.parametrize("model", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("tbt_s", [0.001, 0.1, None])
def test_a_slow_map_reduce_beside_endless_urgent_chains(name: str, model: CostModel, tbt_s: float | None) -> None:
    """Its parts are never stalled and have no SLO; they are older, and get their due all the same."""
    engine = play(name, tbt_s, model)
    for order in range(4):
        engine.arrive(complete(f"map{order}", 200, order, run="map"))
    bound = 2 * 4 * math.ceil(200 / 16) + 2
    urgent = chains(1)
    for _ in range(bound):
        if (new := next(urgent)) is not None:
            engine.arrive(new)
        engine.step()
    assert not any(rid.startswith("map") for rid in engine.ready)


@pytest.mark.parametrize("name", ["paper", "deadline"])
def test_urgent_chains_are_hardly_held_up_by_the_map_reduce(name: str) -> None:
    engine = play(name, 0.14)
    for order in range(4):
        engine.arrive(complete(f"map{order}", 200, order, run="map"))
    urgent = chains(4)
    waits = []
    for _ in range(80):
        if (new := next(urgent)) is not None:
            engine.arrive(new)
        engine.step()
        waits += [prefill.waited for rid, prefill in engine.ready.items() if rid.startswith("s")]
    assert max(waits, default=0) <= 1
