"""How tasks end that cannot go on: with a named reason, each run for itself."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.hint import PLACEHOLDER_ID, Known, OutputHole, TaskHint, Timeouts, new_run_id
from tests.engine.client import Answer, ask, body, new_client, submit
from tests.engine.graphs import Graph, build
from tests.engine.reference import compare
from tests.engine.scenarios import Encode, chain, check_alive_and_right, known, pair, wait_for_nothing_left
from tests.engine.server import Server


def submitted(server: Server, graph: Graph) -> dict[str, Answer]:
    async def main() -> dict[str, Answer]:
        async with new_client() as client:
            return await submit(client, server.url, graph)

    return asyncio.run(main())


def test_a_run_timeout_is_told_as_one(engine: Server, encode: Encode) -> None:
    """Of a task that decodes, and of the one that reads it."""
    segments = [known(encode, 20)]
    alone = build({"a": (segments, {"max_new_tokens": 3000, "ignore_eos": True})}, timeout=Timeouts(run=0.4))
    two = build(
        {
            "a": (segments, {"max_new_tokens": 3000, "ignore_eos": True}),
            "b": ([known(encode, 5, 1), OutputHole(task="a")], {}),
        },
        timeout=Timeouts(run=0.4),
    )
    for graph in (alone, two):
        for name, answer in submitted(engine, graph).items():
            assert answer.meta["finish_reason"]["status_code"] == 504, name
            assert answer.message == "task 'a' ran longer than its timeout of 0.4 s"
    wait_for_nothing_left(engine)


def test_tasks_that_wait_for_each_other_are_told(engine: Server, encode: Encode) -> None:
    run = new_run_id()
    hints = [
        TaskHint(run=run, task=mine, index=i, tasks=2, segments=[known(encode, 5), OutputHole(task=upstream)])
        for i, (mine, upstream) in enumerate([("x", "y"), ("y", "x")])
    ]
    answers = submitted(engine, Graph(run, hints, {"x": {}, "y": {}}))
    # The circle is told from the task that closed it: the one of the two requests that came last.
    circles = ("'x' reads 'y' reads 'x'", "'y' reads 'x' reads 'y'")
    told = {
        tuple(f"these tasks wait for each other: {circle}" in answer.message for circle in circles)
        for answer in answers.values()
    }
    assert told in ({(True, False)}, {(False, True)})
    wait_for_nothing_left(engine)


def test_ids_that_no_model_has_harm_nobody_else(
    engine: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    async def main() -> list[Answer]:
        async with new_client() as client:
            answers = []
            for token in (10**6, 2**63, -1):
                graph = pair(encode)
                request: dict[str, Any] = body(graph.tasks[1], graph.sampling["b"])
                request["kv_hints"]["actions"][0]["payload"]["segments"][2]["ids"] = [token]
                answers.append(await ask(client, engine.url, request))
            return answers

    high, huge, negative = asyncio.run(main())
    assert "segment 2 has token id 1000000" in high.message
    assert f"segment 2 has token id {2**63}" in huge.message
    assert "greater than or equal to 0" in negative.message
    check_alive_and_right(engine, stock, codec, encode, 35)


def test_a_task_that_is_refused_within_a_step_is_told(engine: Server, encode: Encode) -> None:
    """A grammar that is new to the engine is ready in the middle of a step; another task waits there."""
    bystander = pair(encode, tokens=20)
    too_long = [Known(ids=encode("river ") * 5000), OutputHole(task="a")]
    new = {"regex": f"[a-c]{{{1 + time.time_ns() % 89}}}d"}
    graph = build({"a": ([known(encode, 5)], {}), "b": (too_long, new)})

    async def main() -> Answer:
        async with new_client() as client:
            reader = body(bystander.tasks[1], bystander.sampling["b"])
            waiting = asyncio.create_task(ask(client, engine.url, reader))
            await asyncio.sleep(0.3)
            request = body(graph.tasks[1], graph.sampling["b"]) | {"input_ids": [PLACEHOLDER_ID]}
            answer = await asyncio.wait_for(ask(client, engine.url, request), 15)
            await ask(client, engine.url, body(bystander.tasks[0], bystander.sampling["a"]))
            assert (await waiting).ok
            return answer

    answer = asyncio.run(main())
    assert "context length" in answer.message
    wait_for_nothing_left(engine)


def test_the_cache_can_be_flushed_while_tasks_wait_in_a_pause(
    engine: Server, stock: Server, codec: TextEncoder, encode: Encode
) -> None:
    graph = chain(encode, 3, 120)

    async def main() -> dict[str, Answer]:
        async with new_client() as client:
            job = asyncio.create_task(submit(client, engine.url, graph))
            await asyncio.sleep(0.5)
            (await client.post(f"{engine.url}/pause_generation", json={"mode": "retract"})).raise_for_status()
            await asyncio.sleep(0.3)
            assert not job.done()
            assert engine.counts()["held"], "no task waits: this test shows nothing"
            flush = await client.post(f"{engine.url}/flush_cache")
            (await client.post(f"{engine.url}/continue_generation", json={})).raise_for_status()
            assert flush.status_code == 200, flush.text
            return await job

    compare(stock.url, [graph], [asyncio.run(main())], codec)
    check_alive_and_right(engine, stock, codec, encode, 36)
