"""The clients on graphs of tasks that are no chain."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from sglang_ext.bench.clients import HeldClient, PlainClient, PrewarmClient
from sglang_ext.driver.engine_client import Chunk
from tests.sglang_ext.bench.fake_source import FakeSource
from tests.sglang_ext.bench.works import work

# c reads the two that have no input, d reads c and, again, a.
DIAMOND = {"a": [5], "b": [6], "c": [10, "a", 3, "b", 2], "d": [7, "c", "a"]}
OUTPUTS = {"a": 20, "b": 40, "c": 8, "d": 4}


class Paced(FakeSource):
    """Gives a token in turn to all who decode."""

    def __init__(self):
        super().__init__(turn=lambda given: asyncio.sleep(0.001))


def run(client, strip=False, source=None):
    source = source or Paced()
    streams = asyncio.run(client.run(source, work(DIAMOND, OUTPUTS, strip)))
    return source, streams


def of_output(source):
    return [request for request in source.requests if request.sampling["max_new_tokens"]]


def warmed(source):
    return [request.input_ids for request in source.requests if not request.sampling["max_new_tokens"]]


def test_all_clients_end_with_the_same_prompts():
    complete = [3000] * 10 + list(range(1, 21)) + [3000] * 3 + list(range(1, 41)) + [3000] * 2
    for client in (PlainClient(), PrewarmClient()):
        source, streams = run(client)
        by_length = {len(request.input_ids): request.input_ids for request in of_output(source)}
        assert by_length[75] == complete
        assert by_length[35] == [4000] * 7 + list(range(1, 9)) + list(range(1, 21))
        assert {name: len(stream.ids) for name, stream in streams.by_task.items()} == OUTPUTS


def test_plain_begins_a_task_when_its_last_input_has_ended():
    source, _ = run(PlainClient())
    assert source.log[:2] == ["begin 5+20", "begin 6+40"]
    assert source.log.index("begin 75+8") == source.log.index("end 6+40") + 1
    assert source.log.index("begin 35+4") == source.log.index("end 75+8") + 1
    assert not warmed(source)


def test_prewarm_goes_up_to_the_first_output_that_is_not_complete():
    source, _ = run(PrewarmClient(every=16))
    of_c = [ids for ids in warmed(source) if ids[0] == 3000]
    # The known start; 16 of a; then a has ended, so that all of it and what there is of b by sixteens follow.
    assert [len(ids) for ids in of_c[:2]] == [10, 26]
    assert all(len(ids) in (33, 33 + 16, 33 + 32) for ids in of_c[2:])
    assert len(of_c[-1]) == 33 + 32
    assert all(longer[: len(shorter)] == shorter and len(longer) > len(shorter) for shorter, longer in pairwise(of_c))
    # c alone is waited for: a, which stands behind it in d, has ended long ago.
    assert [len(ids) for ids in warmed(source) if ids[0] == 4000] == [7]


def test_prewarm_strips_the_start_of_what_it_has():
    class Spaces(Paced):
        async def generate(self, request):
            async for chunk in super().generate(request):
                yield type(chunk)(tuple(0 if i < 3 else i for i in chunk.ids), chunk.finish, chunk.meta)

    source, streams = run(PrewarmClient(every=16), strip=True, source=Spaces())
    final = next(request.input_ids for request in of_output(source) if request.input_ids[0] == 3000)
    assert len(final) == 75 - 2 * 2
    for ids in warmed(source):
        if ids[0] == 3000:
            assert final[: len(ids)] == ids
    assert streams.finished()["a"].reader_ids(True, True) == list(range(3, 21))


def test_held_tells_who_reads_what():
    source, _ = run(HeldClient())
    payloads = [request.hint["actions"][0]["payload"] for request in source.requests]
    assert [(p["task"], p["index"], p["tasks"], p["readers"]) for p in payloads] == [
        ("a", 0, 4, ["c", "d"]),
        ("b", 1, 4, ["c"]),
        ("c", 2, 4, ["d"]),
        ("d", 3, 4, []),
    ]


@pytest.mark.parametrize("client", [PlainClient(), PrewarmClient(), HeldClient()])
def test_names_of_requests_are_no_beginnings_of_others(client):
    source, _ = run(client)
    rids = sorted(request.rid for request in source.requests)
    assert not any(b.startswith(a) for a, b in pairwise(rids))


class Ending(FakeSource):
    """Ends each output with token 9 as its third, whatever is asked for."""

    async def generate(self, request):
        self.requests.append(request)
        for number in (7, 8, 9):
            await asyncio.sleep(0)
            finish = {"type": "stop", "matched": 9} if number == 9 else None
            yield Chunk((number,), finish, {"prompt_tokens": 1, "cached_tokens": 0})


@pytest.mark.parametrize("client", [PlainClient(), HeldClient()])
def test_outputs_that_the_model_ends(client):
    source = Ending()
    own = replace(work(DIAMOND, OUTPUTS), forced=False)
    streams = asyncio.run(client.run(source, own))
    assert all(stream.ids == [7, 8, 9] for stream in streams.by_task.values())
    # Readers do not get what ended it.
    assert streams.prefix(own.plans["d"], 1)[0] == [4000] * 7 + [7, 8] * 2
    for request in source.requests:
        assert request.sampling["temperature"] == 0.0 and "ignore_eos" not in request.sampling
