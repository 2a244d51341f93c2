"""What each client sends, and when."""

from __future__ import annotations

import asyncio
import time

import pytest

from sglang_ext.bench.chain import ChainShape, ChainText
from sglang_ext.bench.clients import HeldClient, PlainClient, PrewarmClient
from sglang_ext.bench.sample import Sample
from sglang_ext.driver.errors import EngineError
from sglang_ext.tasks.hint import Known, OutputHole, read_hint
from tests.sglang_ext.bench.fake_source import FakeSource

SHAPE = ChainShape(known=20, output=40, start=5, suffix=3, answer=4)
TEXT = ChainText(start=[100] * 5, known=[200] * 20, suffix=[300] * 3)
FULL = 20 + 40 + 3


async def sample(client, source, shape=SHAPE, text=TEXT, weight=16):
    submitted = time.monotonic()
    # No side of an output is stripped, so that nothing is decoded.
    streams = await client.run(source, text.work(shape, weight, codec=None))
    return Sample.of(submitted, streams.by_task["A"], streams.by_task["B"])


def run(client, source, shape=SHAPE, text=TEXT, weight=16):
    return asyncio.run(sample(client, source, shape, text, weight))


def test_plain_sends_b_when_a_has_ended():
    source = FakeSource()
    measured = run(PlainClient(), source)
    assert source.log == ["begin 5+40", "end 5+40", f"begin {FULL}+4", f"end {FULL}+4"]
    assert source.requests[1].input_ids == [*TEXT.known, *range(1, 41), *TEXT.suffix]
    assert measured.prompt_tokens == FULL
    assert measured.engine is None
    assert 0 < measured.gap_s < measured.completion_s


def test_every_request_is_greedy_and_of_a_forced_length():
    for client in (PlainClient(), PrewarmClient(), HeldClient()):
        source = FakeSource(figures=figures)
        run(client, source)
        for request in source.requests:
            assert request.sampling["temperature"] == 0
            assert request.sampling["ignore_eos"] is True
        assert len({request.rid for request in source.requests}) == len(source.requests)


def test_prewarm_sends_the_known_text_and_each_longer_prefix():
    pauses = asyncio.Event()

    async def turn(given):
        await asyncio.sleep(0.001)  # time for what was sent to be answered

    source = FakeSource(turn=turn)
    run(PrewarmClient(every=16), source)
    assert not pauses.is_set()
    assert source.prompts == [(5, 40), (20, 0), (36, 0), (52, 0), (FULL, 4)]
    assert source.requests[2].input_ids == [*TEXT.known, *range(1, 17)]
    assert source.requests[3].input_ids == [*TEXT.known, *range(1, 33)]
    assert source.requests[4].input_ids == [*TEXT.known, *range(1, 41), *TEXT.suffix]


def test_prewarm_waits_for_a_first_token_and_needs_no_known_text():
    source = FakeSource(turn=lambda given: asyncio.sleep(0.001))
    run(PrewarmClient(every=16), source, ChainShape(0, 40, 5, 3, 4), ChainText(TEXT.start, [], TEXT.suffix))
    assert source.prompts == [(5, 40), (16, 0), (32, 0), (43, 4)]


def test_prewarm_has_one_request_under_way_and_catches_up():
    answers = asyncio.Semaphore(0)

    async def turn(given):
        await asyncio.sleep(0.001)
        if given == 36:
            answers.release()  # the known text's request, late: 32 tokens are there by now

    source = FakeSource(turn=turn, warm=answers.acquire)

    async def main():
        chain = asyncio.create_task(sample(PrewarmClient(every=16), source))
        while (FULL, 4) not in source.prompts:
            await asyncio.sleep(0.001)
        answers.release()
        return await chain

    asyncio.run(main())
    assert source.prompts == [(5, 40), (20, 0), (52, 0), (FULL, 4)]


def test_prewarm_sends_nothing_more_once_a_has_ended():
    answers = asyncio.Semaphore(0)
    source = FakeSource(warm=answers.acquire)

    async def main():
        chain = asyncio.create_task(sample(PrewarmClient(every=16), source))
        while f"end {FULL}+4" not in source.log:
            await asyncio.sleep(0.001)
        answers.release()
        return await chain

    asyncio.run(main())
    # B did not wait for the prefix that was still under way, and none followed.
    assert source.prompts == [(5, 40), (20, 0), (FULL, 4)]


def figures(request):
    if request.hint is None:
        return {}
    upstream = {"end_s": 10.0}
    pieces = [[8.0, 8.1, 20, True], [9.9, 10.05, 16, True], [10.05, 10.2, 11, False]]
    return {"grape": [{**upstream, "first_token_s": 10.2, "early_tokens": 20, "pieces": pieces}]}


@pytest.mark.parametrize("known", [20, 0])
def test_held_submits_both_tasks_at_once(known):
    source = FakeSource(turn=lambda given: asyncio.sleep(0.001), figures=figures)
    text = ChainText(TEXT.start, TEXT.known[:known], [3])
    measured = run(HeldClient(), source, ChainShape(known, 40, 5, 3, 4), text, weight=7)
    assert [entry.split()[0] for entry in source.log[:2]] == ["begin", "begin"]
    hints = [
        read_hint([(a["action_type"], a["action_version"], a["payload"]) for a in request.hint["actions"]])
        for request in source.requests
    ]
    a, b = hints
    assert a.run == b.run
    assert (a.task, a.index, a.tasks, a.readers) == ("A", 0, 2, ["B"])
    assert b.segments == [*([Known(ids=TEXT.known)] if known else []), OutputHole(task="A", weight=7), Known(ids=[3])]
    assert measured.engine is not None
    assert measured.engine.gap_s == pytest.approx(0.2)
    assert [tokens for _, _, tokens in measured.engine.late_pieces] == [16, 11]
    assert measured.engine.late_pieces[0][0] == pytest.approx(-0.1)


@pytest.mark.parametrize("client", [PlainClient(), PrewarmClient(), HeldClient()])
def test_too_few_tokens_are_an_error(client):
    with pytest.raises(EngineError, match=r"gave \d+ of \d+ tokens"):
        run(client, FakeSource(short=1))
