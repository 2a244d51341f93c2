"""SGLang's own order, on small examples."""

from __future__ import annotations

from sglang_ext.bench.simulation.prewarm_client import PrewarmClient
from sglang_ext.bench.simulation.stock import StockFormer, StockSettings
from tests.sglang_ext.bench.simulation.jobs import chain, job, machine, nothing_left, simulated, task


def lone(index: int, tokens: int, at: float = 0.0, output: int = 3, shared: str = ""):
    return (
        job(task("t", tokens, output=output), at=at, index=index)
        if not shared
        else job(task("t", 40, tokens, output=output, shared=shared), at=at, index=index)
    )


def steps(jobs, settings: StockSettings, **machine_settings: int):
    _, engine = simulated(jobs, StockFormer(settings), machine(**machine_settings))
    assert nothing_left([engine])
    return [(step.rows, step.tokens, step.waiting) for step in engine.steps]


def test_prefill_comes_first_and_alone():
    assert steps([lone(0, 10), lone(1, 20, at=2.5)], StockSettings()) == [
        (0, 10, 0), (1, 0, 0), (0, 20, 1), (2, 0, 0), (1, 0, 0)
    ]  # fmt: skip


def test_prompts_that_wait_share_a_step_up_to_the_chunk():
    found = steps([lone(0, 30), lone(1, 40), lone(2, 50)], StockSettings(chunk=100))
    assert [tokens for _, tokens, _ in found if tokens] == [100, 20]


def test_mixed_chunks_count_the_decodes():
    found = steps([lone(0, 10, output=8), lone(1, 25, at=1.0)], StockSettings(mixed=True, chunk=10))
    assert found[:4] == [(0, 10, 0), (1, 9, 0), (1, 9, 0), (1, 7, 0)]


def test_mixed_chunks_as_small_as_the_decodes_stop_prefill():
    jobs = [*(lone(n, 1, output=30) for n in range(4)), lone(9, 50, at=3.0)]
    found = steps(jobs, StockSettings(mixed=True, chunk=4))
    alone = found.index((0, 4, 0), 1)
    assert all(tokens == 0 for _, tokens, _ in found[1:alone])


def test_interval_decodes_between_two_prefills():
    jobs = [lone(0, 10, output=9), lone(1, 10, at=0.5), lone(2, 10, at=6.0)]
    found = steps(jobs, StockSettings(interval=3))
    assert [tokens for _, tokens, _ in found][:9] == [10, 0, 0, 0, 10, 0, 0, 0, 10]


def test_interval_ends_where_nothing_decodes():
    found = steps([lone(0, 10, output=1), lone(1, 10, at=2.0)], StockSettings(interval=9))
    assert [tokens for _, tokens, _ in found][:2] == [10, 10]


def test_a_shared_beginning_is_computed_once():
    found = steps([lone(0, 10, shared="rules"), lone(1, 10, at=9.0, shared="rules")], StockSettings())
    assert [tokens for _, tokens, _ in found if tokens] == [50, 10]


def test_lpm_takes_what_is_cached_first():
    jobs = [lone(0, 10, shared="rules"), lone(1, 60, at=1.0), lone(2, 10, at=1.0, shared="rules")]
    fcfs = steps(jobs, StockSettings(chunk=60))
    lpm = steps(jobs, StockSettings(chunk=60, lpm=True))
    assert [t for _, t, _ in fcfs if t] == [50, 60, 10]
    assert [t for _, t, _ in lpm if t] == [50, 60, 10]
    client, _ = simulated(jobs, StockFormer(StockSettings(chunk=60, lpm=True)), machine())
    first, second = (client.runs[n].requests["t"].token_s[0] for n in (1, 2))
    assert second < first


def test_priorities_put_prewarming_last():
    jobs = [chain(0), lone(1, 30, at=2.5)]
    settings = StockSettings(chunk=30, priorities=True)
    client, _ = simulated(jobs, StockFormer(settings), machine(), PrewarmClient, every=2)
    plain, _ = simulated(jobs, StockFormer(StockSettings(chunk=30)), machine(), PrewarmClient, every=2)
    assert client.runs[1].requests["t"].token_s[0] <= plain.runs[1].requests["t"].token_s[0]


def test_a_request_waits_until_all_that_it_may_write_has_room():
    jobs = [lone(0, 60, output=30), lone(1, 60, output=30)]
    client, engine = simulated(jobs, StockFormer(StockSettings()), machine(kv_tokens=150))
    first, second = (run.requests["t"].token_s for run in client.runs)
    assert second[0] > first[-1]
    assert engine.high_water <= 150


def test_what_nobody_holds_makes_room():
    jobs = [lone(n, 60, at=100.0 * n) for n in range(5)]
    _, engine = simulated(jobs, StockFormer(StockSettings()), machine(kv_tokens=150))
    assert engine.cache.evicted == 60 * 3
