"""Ordinary requests whose prompts a plan cuts into pieces, beside workflows: ids, aborts, retraction."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import httpx

from grape_dsl.encoding import TextEncoder
from tests.engine.client import Answer, generate, new_client, run_all, submit
from tests.engine.graphs import random_graph, text
from tests.engine.reference import compare
from tests.engine.scenarios import Encode, chain, check_alive_and_right, wait_for_nothing_left
from tests.engine.server import Server

GREEDY = {"temperature": 0, "max_new_tokens": 24, "ignore_eos": True}


def prompt(encode: Encode, words: int, seed: int) -> list[int]:
    ids: list[int] = encode(text(random.Random(900 + seed), words))
    return ids


async def post(client: httpx.AsyncClient, url: str, ids: list[int], rid: str) -> Any:
    request = {"input_ids": ids, "sampling_params": GREEDY, "rid": rid}
    return (await client.post(f"{url}/generate", json=request)).json()


async def until_cut(client: httpx.AsyncClient, url: str) -> None:
    """Wait until a plan has cut an ordinary prompt."""
    for _ in range(2000):
        state = (await client.get(f"{url}/server_info")).json()["internal_states"][0]
        if state["grape"]["counts"]["cut"]:
            return
    raise AssertionError("no prompt was cut")


def test_cut_prompts_have_the_ids_that_stock_gives(
    scarce: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    """Beside runs, with requests taken back while they decode."""
    graphs = [random_graph(7000 + i, encode) for i in range(6)]
    prompts = [prompt(encode, words, i) for i, words in enumerate((700, 40, 300, 15, 500, 90, 350, 60))]

    async def main() -> tuple[list[Any], list[dict[str, Answer]]]:
        async with new_client() as client:
            runs = asyncio.gather(*(submit(client, scarce.url, g) for g in graphs))
            strangers = asyncio.gather(*(post(client, scarce.url, ids, f"s{i}.") for i, ids in enumerate(prompts)))
            await until_cut(client, scarce.url)
            return list(await strangers), list(await runs)

    strangers, answers = asyncio.run(main())
    references = generate(stock.url, prompts, [GREEDY] * len(prompts))
    assert [s["output_ids"] for s in strangers] == [r["output_ids"] for r in references]
    assert any(s["meta_info"].get("num_retractions", 0) for s in strangers) or _retracted(scarce)
    compare(stock.url, graphs, answers, codec)
    wait_for_nothing_left(scarce)


def _retracted(server: Server) -> bool:
    return "Testing retraction" in server.log.read_text(errors="replace")


def test_an_abort_while_cut(scarce: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    """Its client is told once, its KV is given back, and the run beside it is unharmed."""
    graph = chain(encode, 3, 60)

    async def main() -> tuple[list[Any], dict[str, Answer]]:
        found = []
        async with new_client() as client:
            run = asyncio.create_task(submit(client, scarce.url, graph))
            for i in range(4):
                job = asyncio.create_task(post(client, scarce.url, prompt(encode, 1100, 20 + i), f"aborted{i}."))
                await until_cut(client, scarce.url)
                await client.post(f"{scarce.url}/abort_request", json={"rid": f"aborted{i}."})
                found.append(await asyncio.wait_for(job, 20))
            return found, await run

    found, answers = asyncio.run(main())
    reasons = [each["meta_info"]["finish_reason"]["type"] if "meta_info" in each else "error" for each in found]
    assert "abort" in reasons or "error" in reasons, reasons
    compare(stock.url, [graph], [answers], codec)
    check_alive_and_right(scarce, stock, codec, encode, 36)


def test_a_prompt_that_sglang_is_cutting_is_taken_over(
    scarce: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    """Runs come while SGLang cuts a long prompt by itself; it goes on as one of several in pieces."""
    graphs = [chain(encode, 2, 20) for _ in range(6)]
    prompts = [prompt(encode, 1100, 40 + i) for i in range(6)]

    async def main() -> tuple[list[Any], list[dict[str, Answer]]]:
        strangers, answers = [], []
        async with new_client() as client:
            for i, graph in enumerate(graphs):
                job = asyncio.create_task(post(client, scarce.url, prompts[i], f"long{i}."))
                await asyncio.sleep(0.005 * i)
                answers.append(await submit(client, scarce.url, graph))
                strangers.append(await job)
        return strangers, answers

    strangers, answers = asyncio.run(main())
    references = generate(stock.url, prompts, [GREEDY] * len(prompts))
    assert [s["output_ids"] for s in strangers] == [r["output_ids"] for r in references]
    compare(stock.url, graphs, answers, codec)
    wait_for_nothing_left(scarce)


def test_without_a_task_sglang_schedules_alone(scarce: Server, encode: Encode) -> None:
    """Not one step is planned for ordinary requests by themselves."""
    before = scarce.state()["grape"]["decisions"]["steps"]
    generate(scarce.url, [prompt(encode, 300, 60 + i) for i in range(4)], [GREEDY] * 4)
    assert scarce.state()["grape"]["decisions"]["steps"] == before
    run_all(scarce.url, [chain(encode, 2, 8)], at_once=1)
    assert scarce.state()["grape"]["decisions"]["steps"] > before
