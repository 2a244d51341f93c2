"""Faults that other systems had, each by name."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.hint import Known, OutputHole, Strip
from tests.engine.client import Answer, ask, body, generate, new_client, run_all, stream, submit
from tests.engine.graphs import Graph, build, random_graph, text
from tests.engine.reference import compare, reader_output
from tests.engine.scenarios import Encode, chain, check_alive_and_right, known, pair, wait_for_nothing_left
from tests.engine.server import Server, serve

CONTEXT = 4096


@pytest.fixture(scope="module")
def tight(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A small pool and short patience."""
    flags = ["--max-total-tokens", "2048", "--max-running-requests", "24", "--enable-mixed-chunk"]
    patience = {"GRAPE_UPSTREAM_TIMEOUT": "2", "GRAPE_LAPSE": "0.4"}
    with serve(tiny_model, tmp_path_factory.mktemp("tight"), flags, environment=patience) as server:
        yield server


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


def of_run(server: Server, graph: Graph) -> list[dict[str, Any]]:
    return [event for event in server.events() if event["run"] == graph.run]


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


def test_kind_4_early_prefill_gives_way_in_a_small_pool(
    tight: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    """64 runs want more than ten times the pool; every run ends, no ordinary request suffers."""
    graphs = [pair(encode, tokens=60, before=250, weight=8) for _ in range(64)]
    prompts = [encode(text(random.Random(i), 150)) for i in range(12)]
    sampling = [{"temperature": 0, "max_new_tokens": 24}] * len(prompts)

    async def ordinary(client: httpx.AsyncClient) -> list[Any]:
        found = []
        for ids, params in zip(prompts, sampling, strict=True):
            response = await client.post(f"{tight.url}/generate", json={"input_ids": ids, "sampling_params": params})
            assert response.status_code == 200, response.text
            found.append(response.json())
        return found

    async def main() -> tuple[list[dict[str, Answer]], list[Any]]:
        async with new_client() as client:
            runs = asyncio.gather(*(submit(client, tight.url, g) for g in graphs))
            strangers = await ordinary(client)
            return list(await runs), strangers

    answers, strangers = asyncio.run(main())
    compare(stock.url, graphs, answers, codec)
    references = generate(stock.url, prompts, sampling)
    assert [s["output_ids"] for s in strangers] == [r["output_ids"] for r in references]
    assert all("grape" not in s["meta_info"] for s in strangers)
    given_up = [e for e in tight.events() if e["event"] == "state" and e["note"] == "gave up its KV"]
    print(f"\n{len(given_up)} times early KV gave way")
    assert given_up, "the pool was never short: this test shows nothing"
    check_alive_and_right(tight, stock, codec, encode, 33)


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


def test_kind_8_generated_ids_pass_through(engine: Server, stock: Server, encode: Encode, codec: TextEncoder) -> None:
    graph = pair(encode, tokens=60)
    (answers,) = run_all(engine.url, [graph], at_once=1)
    output = answers["a"].output_ids
    assert encode(codec.decode(output)) != output, "encoding the text again would give the same: this shows nothing"
    compare(stock.url, [graph], [answers], codec)


def test_kind_9_characters_split_over_tokens(engine: Server, codec: TextEncoder, encode: Encode) -> None:
    """Streamed text only ever grows, though this model's tokens end inside characters all the time."""
    graph = pair(encode, tokens=100)

    async def main() -> list[dict[str, Any]]:
        async with new_client() as client:
            reader = asyncio.create_task(ask(client, engine.url, body(graph.tasks[1], graph.sampling["b"])))
            request = body(graph.tasks[0], graph.sampling["a"])
            chunks = [c async for c in stream(client, engine.url, request)]
            await reader
            return chunks

    chunks = asyncio.run(main())
    texts = [c["text"] for c in chunks]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))
    assert texts[-1] == codec.decode(chunks[-1]["output_ids"], skip_special=True)


@pytest.mark.parametrize("weight", [1, 3])
def test_kind_10_stop_strings_over_chunk_borders(
    weight: int, engine: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    """Stop strings cut out of what the model writes: over borders, near misses, one a prefix of another."""
    plain = pair(encode, tokens=60)
    (answers,) = run_all(engine.url, [plain], at_once=1)
    words = codec.decode(answers["a"].output_ids)
    stops = [
        [words[40:47]],
        [words[30:36], words[30:38]],
        [words[50:55] + "\u0000"],
        [words[20:24] + "x", words[60:63]],
        [words[-3:]],
    ]
    graphs = []
    for chosen in stops:
        for side in (False, True):
            hole = (
                OutputHole(task="a", weight=weight, transform=Strip()) if side else OutputHole(task="a", weight=weight)
            )
            graphs.append(
                build(
                    {
                        "a": (plain.tasks[0].segments, {"max_new_tokens": 60, "ignore_eos": True, "stop": chosen}),
                        "b": ([known(encode, 10, 1), hole, known(encode, 3, 2)], {}),
                    }
                )
            )
    got = run_all(engine.url, graphs, at_once=1)
    compare(stock.url, graphs, got, codec)
    stopped = 0
    for graph, run in zip(graphs, got, strict=True):
        reason = run["a"].meta["finish_reason"]
        if reason["type"] == "stop":
            stopped += 1
            assert reason["matched"] in graph.sampling["a"]["stop"]
            assert reason["matched"] not in codec.decode(reader_output(run["a"], codec))
    assert stopped >= 4


def test_kind_11_empty_outputs(engine: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    """The first token ends the output, as EOS would or as a stop string does."""
    plain = pair(encode, tokens=4)
    (answers,) = run_all(engine.url, [plain], at_once=1)
    first = answers["a"].output_ids[0]
    ends = [{"stop_token_ids": [first]}, {"stop": [codec.decode([first])]}]
    for end in ends:
        segments = plain.tasks[0].segments
        works = build(
            {
                "a": (segments, end),
                "b": ([known(encode, 9, 1), OutputHole(task="a"), known(encode, 3, 2)], {}),
                "c": ([OutputHole(task="a", transform=Strip()), known(encode, 3, 3)], {}),
                "d": ([known(encode, 9, 4), OutputHole(task="a")], {}),
            }
        )
        (got,) = run_all(engine.url, [works], at_once=1)
        assert got["a"].figures["output_ids"] == []
        compare(stock.url, [works], [got], codec)
        alone = build({"a": (segments, end), "b": ([OutputHole(task="a")], {})})
        (got,) = run_all(engine.url, [alone], at_once=1)
        assert got["a"].ok
        assert "empty" in got["b"].message
    wait_for_nothing_left(engine)


def test_kind_12_the_context_is_passed_by_the_last_chunk(
    engine: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    tokens, answer = 60, 10
    filler = encode(text(random.Random(5), 5000))
    others = [pair(encode, tokens=40) for _ in range(3)]
    graphs, fits = [], []
    for over in (-2, -1, 0, 1, 2, 30):
        size = CONTEXT + over - tokens - answer
        b = ([Known(ids=filler[:size]), OutputHole(task="a", weight=8)], {"max_new_tokens": answer})
        a = ([known(encode, 20)], {"max_new_tokens": tokens, "ignore_eos": True})
        graphs.append(build({"a": a, "b": b}))
        fits.append(over <= 0)
    got = run_all(engine.url, [*graphs, *others], at_once=8)
    for fit, run in zip(fits, got, strict=False):
        if fit:
            assert run["b"].ok, run["b"].message
        else:
            assert "context length" in run["b"].message
    assert not got[5]["a"].ok, "its upstream went on for nothing"
    assert len(got[5]["a"].output_ids) <= tokens - 25
    right = [i for i, fit in enumerate(fits) if fit]
    compare(stock.url, [graphs[i] for i in right], [got[i] for i in right], codec)
    compare(stock.url, others, got[len(graphs) :], codec)
    wait_for_nothing_left(engine)


def test_an_upstream_that_never_comes_is_an_error(tight: Server, encode: Encode) -> None:
    graph = pair(encode)

    async def main() -> Answer:
        async with new_client() as client:
            return await ask(client, tight.url, body(graph.tasks[1], graph.sampling["b"]))

    began = time.monotonic()
    answer = asyncio.run(main())
    assert "'a', never submitted" in answer.message
    assert 1.5 < time.monotonic() - began < 10
    wait_for_nothing_left(tight)


def test_kv_that_waits_for_nothing_lapses(tight: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    graph = pair(encode, tokens=30)

    async def main() -> dict[str, Answer]:
        async with new_client() as client:
            b = asyncio.create_task(ask(client, tight.url, body(graph.tasks[1], graph.sampling["b"])))
            await asyncio.sleep(1.2)
            a = await ask(client, tight.url, body(graph.tasks[0], graph.sampling["a"]))
            return {"a": a, "b": await b}

    answers = asyncio.run(main())
    notes = [e["note"] for e in of_run(tight, graph) if e["event"] == "state" and e["task"] == "b" and e["note"]]
    assert notes == ["gave up its KV"]
    compare(stock.url, [graph], [answers], codec)


def test_a_task_that_lapsed_goes_on_though_no_id_comes(
    tight: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    """Its last segment is a hole, and the upstream's output is empty."""
    plain = pair(encode, tokens=2)
    (answers,) = run_all(tight.url, [plain], at_once=1)
    end = {"stop_token_ids": [answers["a"].output_ids[0]]}
    graph = build({"a": (plain.tasks[0].segments, end), "b": ([known(encode, 60, 1), OutputHole(task="a")], {})})

    async def main() -> dict[str, Answer]:
        async with new_client() as client:
            b = asyncio.create_task(ask(client, tight.url, body(graph.tasks[1], graph.sampling["b"])))
            await asyncio.sleep(1.2)
            a = await ask(client, tight.url, body(graph.tasks[0], graph.sampling["a"]))
            return {"a": a, "b": await asyncio.wait_for(b, 10)}

    got = asyncio.run(main())
    assert got["a"].figures["output_ids"] == []
    notes = [e["note"] for e in of_run(tight, graph) if e["event"] == "state" and e["task"] == "b" and e["note"]]
    assert notes == ["gave up its KV"]
    compare(stock.url, [graph], [got], codec)


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
