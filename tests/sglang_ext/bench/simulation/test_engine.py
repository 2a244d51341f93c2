"""The loop's times, computed by hand: a step takes 1 s and 0.1 s per prefill token."""

from __future__ import annotations

import pytest

from sglang_ext.bench.simulation.batch import Batch
from sglang_ext.bench.simulation.clients import Client
from sglang_ext.bench.simulation.engine import Engine, SimulationError
from sglang_ext.bench.simulation.estimates import Estimates
from sglang_ext.bench.simulation.held_client import HeldClient
from sglang_ext.bench.simulation.machine import Overlap
from sglang_ext.bench.simulation.planned import PlannedFormer
from sglang_ext.bench.simulation.prewarm_client import PrewarmClient
from sglang_ext.bench.simulation.stock import StockFormer, StockSettings
from tests.sglang_ext.bench.simulation.jobs import (
    SLO,
    Greedy,
    chain,
    job,
    machine,
    nothing_left,
    simulated,
    task,
    times,
)


def test_plain_client_without_overlap():
    client, engine = simulated([chain()], StockFormer(StockSettings()), machine())
    # a's prefill of 10 tokens ends at 2; b's of 60 takes 7 s.
    assert times(client) == {"a": [2.0, 3.0, 4.0, 5.0], "b": pytest.approx([12.0, 13.0, 14.0])}
    assert nothing_left([engine])


def test_one_step_is_lost_with_overlap_on_a_device():
    client, engine = simulated([chain()], StockFormer(StockSettings()), machine(Overlap.DEVICE))
    # a's end is known at 5, when the step that ends at 6 runs; b can only be formed behind that.
    assert times(client) == {"a": [2.0, 3.0, 4.0, 5.0], "b": pytest.approx([13.0, 14.0, 15.0])}
    assert nothing_left([engine])


def test_tokens_leave_one_step_later_where_the_steps_run_on_the_host():
    client, _ = simulated([chain()], StockFormer(StockSettings()), machine(Overlap.HOST))
    # Each token leaves after the next step; after a's last one b's prefill of 7 s begins at once.
    assert times(client) == {"a": [3.0, 4.0, 5.0, 6.0], "b": pytest.approx([14.0, 15.0, 16.0])}


def test_a_client_that_takes_time_loses_another_step_beside_others():
    """With another decode running, b's step is the second one after a's last, or for a client the third one."""
    jobs = [job(task("t", 1, output=40)), chain(1, at=0.5)]
    gaps = {}
    for client_s in (0.0, 0.5):
        client, _ = simulated(jobs, StockFormer(StockSettings()), machine(Overlap.DEVICE, client_s=client_s))
        own = times(client, 1)
        gaps[client_s] = own["b"][0] - own["a"][-1]
    assert gaps == pytest.approx({0.0: 1.0 + 7.0, 0.5: 1.0 + 1.0 + 7.0})


def test_held_client_streams_while_the_upstream_decodes():
    greedy = PlannedFormer(Greedy(room=20), Estimates())
    client, engine = simulated([chain()], greedy, machine(), HeldClient, weight=2)
    # Steps: a's 10 and 10 of b (3 s), then 20 and 19 of b's 49 known ones beside a's decodes.
    assert [step.tokens for step in engine.steps[:4]] == [20, 20, 20, 1]
    assert times(client)["a"] == pytest.approx([3.0, 6.0, 9.0, 10.1])
    assert client.runs[0].requests["b"].token_s[0] == pytest.approx(10.1 + 1.0 + 0.9)
    assert sum(step.tokens for step in engine.steps) == 10 + 60
    assert nothing_left([engine])


def test_static_streaming_takes_known_text_only():
    former = PlannedFormer(Greedy(), Estimates())
    client, engine = simulated([chain()], former, machine(), HeldClient, streams=False)
    assert [step.tokens for step in engine.steps if step.tokens] == [59, 11]
    assert times(client)["b"][0] - times(client)["a"][-1] == pytest.approx(2.1)


def test_prewarm_fills_the_cache_before_the_task_is_sent():
    _, engine = simulated(
        [chain()], StockFormer(StockSettings(mixed=True, chunk=1000)), machine(), PrewarmClient, every=2
    )
    # The known 50, then a's first two tokens; b itself finds 52 of its 60 tokens.
    assert [step.tokens for step in engine.steps if step.tokens] == [10, 50, 2, 8]
    assert nothing_left([engine])


def test_closed_loop_keeps_so_many_runs_in_flight():
    jobs = [chain(n, at=1000.0) for n in range(5)]
    engine = Engine(machine(), StockFormer(StockSettings()))
    client = Client(engine, SLO, Estimates())
    client.start(jobs, in_flight=2)
    engine.run()
    starts = [run.submitted_s for run in client.runs]
    ends = sorted(run.requests["b"].token_s[-1] for run in client.runs)
    assert starts == [0.0, 0.0, *ends[:3]]


def test_standing_still_is_an_error():
    class Idle:
        def arrive(self, request: object) -> None:
            pass

        def form(self, engine: Engine) -> Batch:
            return Batch()

    with pytest.raises(SimulationError, match="1 requests are left"):
        simulated([chain()], Idle(), machine())
