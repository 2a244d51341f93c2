"""Faults that other systems had, each by name."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import httpx
import pytest

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.hint import Known
from tests.engine.client import Answer, ask, body, generate, new_client, run_all, stream, submit
from tests.engine.graphs import random_graph, text
from tests.engine.reference import compare, reader_output
from tests.engine.scenarios import Encode, chain, check_alive_and_right, of_run, pair, wait_for_nothing_left
from tests.engine.server import Server


async def abort(client: httpx.AsyncClient, url: str, rid: str) -> None:
    (await client.post(f"{url}/abort_request", json={"rid": rid})).raise_for_status()


async def read_until(client: httpx.AsyncClient, url: str, request: dict[str, Any], tokens: int) -> None:
    """Read a stream until it has so many tokens, then go away."""
    async for chunk in stream(client, url, request):
        if len(chunk.get("output_ids", ())) >= tokens:
            return


def test_kind_1_client_gone_while_half_prefilled(
    engine: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    async def leave_early() -> None:
        graph = pair(encode, tokens=400)
        async with new_client() as client:
            reader = asyncio.create_task(ask(client, engine.url, body(graph.tasks[1], graph.sampling["b"])))
            await read_until(client, engine.url, body(graph.tasks[0], graph.sampling["a"]), 30)
            reader.cancel()

    for _ in range(6):
        asyncio.run(leave_early())
    graph = pair(encode, tokens=400)
    compare(stock.url, [graph], run_all(engine.url, [graph], at_once=1), codec)
    wait_for_nothing_left(engine)
    assert engine.alive(), engine.tail()


def test_kind_2_stop_reaches_every_task(engine: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    doomed, other = chain(encode, 5, 80), chain(encode, 5, 30)

    async def main() -> tuple[dict[str, Answer], dict[str, Answer]]:
        async with new_client() as client:
            runs = [asyncio.create_task(submit(client, engine.url, g)) for g in (doomed, other)]
            while not any(e["event"] == "tokens" and e["task"] == "t1" for e in of_run(engine, doomed)):
                await asyncio.sleep(0.02)
            await abort(client, engine.url, doomed.rid("t1"))
            first, second = await asyncio.gather(*runs)
            return first, second

    stopped, unharmed = asyncio.run(main())
    assert stopped["t0"].ok
    for name in ("t1", "t2", "t3", "t4"):
        assert stopped[name].meta["finish_reason"]["type"] == "abort", name
    assert all(not stopped[name].output_ids for name in ("t2", "t3", "t4"))
    log = of_run(engine, doomed)
    ended = min(i for i, e in enumerate(log) if e["event"] == "state" and e["state"] == "aborted")
    assert all(e["event"] == "state" for e in log[ended:]), "work went on after the run had ended"
    compare(stock.url, [other], [unharmed], codec)
    check_alive_and_right(engine, stock, codec, encode, 31)


@pytest.mark.parametrize("way", ["abort", "leave"])
def test_kind_3_closing_at_random_moments(
    way: str, engine: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    """200 random cancels in all: by an abort of some task, or by a client that goes away."""
    rng = random.Random(way)

    async def one(client: httpx.AsyncClient, gate: asyncio.Semaphore, seed: int) -> None:
        async with gate:
            graph = random_graph(seed, encode, tokens=(20, 60))
            job = asyncio.create_task(submit(client, engine.url, graph, rng))
            await asyncio.sleep(rng.uniform(0, 0.8))
            if way == "abort":
                await abort(client, engine.url, graph.rid(rng.choice(graph.tasks).task))
                await job
            else:
                job.cancel()
                await asyncio.gather(job, return_exceptions=True)

    async def main() -> None:
        gate = asyncio.Semaphore(10)
        async with new_client() as client:
            await asyncio.gather(*(one(client, gate, 5000 + i) for i in range(100)))

    asyncio.run(main())
    check_alive_and_right(engine, stock, codec, encode, 32)


def test_kind_7_logprobs_of_a_streamed_prompt(
    engine: Server, stock: Server, encode: Encode, codec: TextEncoder
) -> None:
    graph = pair(encode, tokens=30)

    async def main() -> list[Answer]:
        async with new_client() as client:
            wants = {"return_logprob": True, "logprob_start_len": 0}
            requests = [body(graph.tasks[1], graph.sampling["b"], **wants), body(graph.tasks[0], graph.sampling["a"])]
            return list(await asyncio.gather(*(ask(client, engine.url, r) for r in requests)))

    b, a = asyncio.run(main())
    assert a.ok and b.ok, (a.message, b.message)
    first, last = (s.ids for s in graph.tasks[1].segments if isinstance(s, Known))
    prompt = [*first, *reader_output(a, codec), *last]
    (reference,) = generate(stock.url, [prompt], [graph.sampling["b"]], return_logprob=True, logprob_start_len=0)
    for side in ("input_token_logprobs", "output_token_logprobs"):
        ours, theirs = b.meta[side], reference["meta_info"][side]
        assert [entry[1] for entry in ours] == [entry[1] for entry in theirs]
        assert [e[0] for e in ours if e[0] is not None] == pytest.approx(
            [e[0] for e in theirs if e[0] is not None], abs=1e-4
        )
    wait_for_nothing_left(engine)


def test_pause_and_continue(engine: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    graph = chain(encode, 3, 120)

    async def main() -> dict[str, Answer]:
        async with new_client() as client:
            job = asyncio.create_task(submit(client, engine.url, graph))
            for pause in (0.3, 0.5, 0.7):
                await asyncio.sleep(pause)
                (await client.post(f"{engine.url}/pause_generation", json={"mode": "retract"})).raise_for_status()
                (await client.post(f"{engine.url}/continue_generation", json={})).raise_for_status()
            return await job

    compare(stock.url, [graph], [asyncio.run(main())], codec)
    check_alive_and_right(engine, stock, codec, encode, 34)


def test_what_a_request_may_not_ask_for(engine: Server, encode: Encode) -> None:
    async def main() -> list[str]:
        async with new_client() as client:
            found = []
            one = pair(encode)
            twice = body(one.tasks[0], one.sampling["a"] | {"max_new_tokens": 200})
            running = asyncio.create_task(ask(client, engine.url, twice))
            await asyncio.sleep(0.3)
            hint = one.tasks[0].model_copy(update={"index": 1, "tasks": 2})
            found.append((await ask(client, engine.url, body(hint, one.sampling["a"]))).message)
            await running
            late = one.tasks[1]
            found.append((await ask(client, engine.url, body(late, one.sampling["b"]))).message)
            bad = body(pair(encode).tasks[0], {"max_new_tokens": 3})
            bad["kv_hints"]["actions"][0]["payload"]["tasks"] = 0
            found.append((await ask(client, engine.url, bad)).message)
            foreign = body(pair(encode).tasks[0], {"max_new_tokens": 3})
            foreign["rid"] = "mine"
            found.append((await ask(client, engine.url, foreign)).message)
            contrary = body(pair(encode).tasks[0], {"max_new_tokens": 3})
            contrary["input_ids"] = [7, *contrary["input_ids"]]
            found.append((await ask(client, engine.url, contrary)).message)
            return found

    duplicate, late, payload, rid, ids = asyncio.run(main())
    assert "of that name already" in duplicate
    assert "has ended" in late
    assert "tasks" in payload
    assert "request id" in rid
    assert "first segment" in ids
    wait_for_nothing_left(engine)
    assert engine.alive(), engine.tail()


def test_ordinary_requests_are_untouched(engine: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    """Strangers beside workflows get the ids and the fields that stock SGLang gives them."""
    graphs = [random_graph(700 + i, encode) for i in range(8)]
    prompts = [encode(text(random.Random(90 + i), 60)) for i in range(10)]
    sampling = {"temperature": 0, "max_new_tokens": 40}

    async def main() -> tuple[list[Any], list[dict[str, Answer]]]:
        async with new_client() as client:
            runs = asyncio.gather(*(submit(client, engine.url, g) for g in graphs))

            async def one(url: str, ids: list[int]) -> Any:
                request = {"input_ids": ids, "sampling_params": sampling, "stream": True}
                return [c async for c in stream(client, url, request)]

            strangers = await asyncio.gather(*(one(engine.url, ids) for ids in prompts))
            references = await asyncio.gather(*(one(stock.url, ids) for ids in prompts))
            return list(zip(strangers, references, strict=True)), list(await runs)

    pairs, answers = asyncio.run(main())
    for ours, theirs in pairs:
        assert ours[-1]["output_ids"] == theirs[-1]["output_ids"]
        assert ours[-1]["meta_info"].keys() == theirs[-1]["meta_info"].keys()
        assert all(c["output_ids"] for c in ours), "a client saw a chunk without a token"
    compare(stock.url, graphs, answers, codec)
