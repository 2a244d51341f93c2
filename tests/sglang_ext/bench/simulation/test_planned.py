"""Steps from a policy's plan: what the policy is told, and what is made of its answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_ext.bench.simulation.clients import Client
from sglang_ext.bench.simulation.estimates import Estimates
from sglang_ext.bench.simulation.held_client import HeldClient
from sglang_ext.bench.simulation.machine import Overlap
from sglang_ext.bench.simulation.planned import PlannedFormer
from sglang_ext.bench.simulation.request import Request, Run
from tests.sglang_ext.bench.simulation.jobs import Greedy, chain, job, machine, nothing_left, simulated, task, times
from tests.sglang_ext.policy.distances import hops, rest_steps


def watched(jobs, policy: Greedy, **settings: int):
    own = Estimates()
    return simulated(jobs, PlannedFormer(policy, own), machine(**settings), HeldClient, own, weight=2)


def test_a_policy_sees_what_is_ready_and_why():
    policy = Greedy(room=20)
    watched([chain()], policy)
    first = policy.seen[0]
    a, b = first.ready
    assert (a.pending, a.complete, a.stalled, a.hops, a.deadline_s) == (10, True, False, 0, 100.0)
    # One token is left for the last piece.
    assert (b.pending, b.complete, b.hops, b.has_row, b.deadline_s) == (49, False, 1, False, None)
    assert (b.to_come, b.rest_steps) == (64 + 6, 64.0)
    last = policy.seen[-1]
    assert [(p.complete, p.stalled, p.pending, p.context, p.has_row) for p in last.ready] == [(True, True, 9, 51, True)]
    assert last.holding[0].tokens == 51
    assert last.ready[0].deadline_s == pytest.approx(last.ready[0].since_s + 10.0)


def test_rows_are_taken_by_prompts_that_began_before_they_were_complete():
    policy = Greedy(room=6)
    watched([chain()], policy)
    held = [(s.rows_free, len(s.holding), s.ready[0].complete) for s in policy.seen]
    assert (64, 1, True) in held, "the first task was complete before it held KV"
    assert (63, 1, True) in held, "the second one began early"


def test_decodes_carry_the_time_of_their_last_token():
    policy = Greedy(room=20)
    watched([chain()], policy)
    for snapshot in policy.seen[1:-1]:
        (decode,) = snapshot.decodes
        assert decode.last_token_s == snapshot.now_s
        assert decode.tbt_s == 10.0


def test_waiting_steps_are_counted():
    policy = Greedy(room=10, early=False)
    watched([chain()], policy)
    waited = [p.waited for snapshot in policy.seen for p in snapshot.ready if p.rid == "run0.b"]
    assert waited[:3] == [0, 1, 2]


def test_estimates_come_from_what_has_ended():
    policy = Greedy(room=20)
    watched([chain(0), chain(1, at=50.0)], policy)
    waits = {p.rest_steps for snapshot in policy.seen for p in snapshot.ready if p.rid == "run1.b"}
    # a of the first run wrote 4 tokens.
    assert max(waits) == 4.0


@given(
    edges=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda e: e[0] < e[1])),
    done=st.integers(0, 7),
    written=st.integers(0, 100),
)
def test_expectations_agree_with_the_policys_own_functions(edges, done, written):
    names = [f"t{n}" for n in range(7)]
    upstream = {names[n]: [names[a] for a, b in sorted(edges) if b == n] for n in range(7)}
    run = Run("r", job(*(task(name, 5, *upstream[name]) for name in names)), 0.0)
    for number, name in enumerate(names):
        run.requests[name] = request = Request(name, run, run.job.by_name[name], number, 3, 3, 0.0)
        request.finished = number < done
        request.token_s = [0.0] * (written if number == done else 0)
    estimates = Estimates()
    found = estimates.ahead(run)
    assert {name: ahead.hops for name, ahead in found.items()} == hops(upstream, names[:done])
    expected = rest_steps(upstream, names[:done], lambda name: estimates.rest(run, name))
    assert {name: ahead.steps for name, ahead in found.items()} == pytest.approx(expected)


def test_early_kv_gives_way_to_a_complete_prompt():
    """The pool holds b's early tokens or the other run's prompt, not both."""
    jobs = [chain(0), job(task("t", 60, output=10), at=2.5, index=1)]
    policy = Greedy()
    client, engine = watched(jobs, policy, kv_tokens=115)
    assert any(snapshot.short for snapshot in policy.seen)
    assert nothing_left([engine])
    assert len(times(client, 0)["b"]) == 3
    assert engine.high_water <= 115


def test_early_kv_gives_way_to_decodes():
    """A prompt begins where nothing else runs, though what it will write does not fit beside the early KV."""
    jobs = [job(task("a", 10, output=30), task("b", 60, "a", 6)), job(task("c", 10, output=30), at=0.5, index=1)]
    client, engine = watched(jobs, Greedy(room=80), kv_tokens=110)
    assert engine.high_water <= 110
    assert sum(step.tokens for step in engine.steps) > 10 + 10 + 96
    assert nothing_left([engine])
    assert len(times(client, 0)["b"]) == 3


def test_pieces_never_exceed_what_is_asked_or_known():
    policy = Greedy(room=7)
    _, engine = watched([chain(n, at=float(n)) for n in range(4)], policy)
    assert all(step.tokens <= 7 for step in engine.steps)
    assert sum(step.tokens for step in engine.steps) == 4 * 70


@settings(max_examples=40, deadline=None)
@given(
    overlap=st.sampled_from(list(Overlap)),
    room=st.integers(3, 200),
    kv=st.integers(120, 600),
    weight=st.sampled_from([None, 1, 16]),
    arrivals=st.lists(st.floats(0, 30), min_size=1, max_size=6),
)
def test_every_run_ends_and_gives_all_back(overlap, room, kv, weight, arrivals):
    jobs = [chain(n, at=at) for n, at in enumerate(sorted(arrivals))]
    former = PlannedFormer(Greedy(room=room), Estimates())
    client, engine = simulated(
        jobs, former, machine(overlap, kv_tokens=kv), HeldClient, weight=weight or 16, streams=weight is not None
    )
    assert nothing_left([engine])
    for run in client.runs:
        assert [len(run.requests[name].token_s) for name in ("a", "b")] == [4, 3]
        assert run.requests["b"].token_s[0] > run.requests["a"].token_s[-1]
    assert engine.cache.available == kv


def test_without_streaming_a_policy_serves_ordinary_requests():
    client, engine = simulated([chain()], PlannedFormer(Greedy(), Estimates()), machine(), Client)
    assert [step.tokens for step in engine.steps if step.tokens] == [10, 60]
    assert nothing_left([engine])
    assert len(times(client)["b"]) == 3
