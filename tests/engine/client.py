"""Submitting runs over `/generate`, as the wire contract has it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from sglang_ext.tasks.hint import TaskHint, envelope, input_ids, request_id
from tests.engine.graphs import Graph

LIMIT = 60.0


@dataclass
class Answer:
    """What one task's request returned."""

    output_ids: list[int] = field(default_factory=list)
    text: str = ""
    meta: dict[str, Any] = field(default_factory=dict)
    chunks: int = 0
    error: str | None = None

    @property
    def figures(self) -> dict[str, Any]:
        """The task's own figures; KeyError if it did not finish."""
        figures: dict[str, Any] = self.meta["grape"][0]
        return figures

    @property
    def ok(self) -> bool:
        return self.error is None and self.meta.get("finish_reason", {}).get("type") in ("stop", "length")

    @property
    def message(self) -> str:
        return self.error or str((self.meta.get("finish_reason") or {}).get("message"))


def body(hint: TaskHint, sampling: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "input_ids": input_ids(hint.segments),
        "sampling_params": dict(sampling),
        "rid": request_id(hint.run, hint.index),
        "kv_hints": envelope(hint),
        "stream": True,
        **more,
    }


async def stream(client: httpx.AsyncClient, url: str, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    async with client.stream("POST", f"{url}/generate", json=dict(request)) as response:
        if response.status_code != 200:
            yield {"error": {"message": (await response.aread()).decode()}}
            return
        async for line in response.aiter_lines():
            if line.startswith("data:") and line != "data: [DONE]":
                yield json.loads(line[5:])


async def ask(client: httpx.AsyncClient, url: str, request: Mapping[str, Any]) -> Answer:
    answer = Answer()
    async for chunk in stream(client, url, request):
        if "error" in chunk:
            answer.error = str(chunk["error"].get("message", chunk["error"]))
            return answer
        answer.chunks += 1
        answer.text, answer.meta = chunk["text"], chunk["meta_info"]
        answer.output_ids = chunk["output_ids"]
    return answer


async def submit(
    client: httpx.AsyncClient, url: str, graph: Graph, order: random.Random | None = None
) -> dict[str, Answer]:
    """Submit a run's tasks, readers first or in a shuffled order, and wait for all."""
    hints = graph.tasks[::-1]
    if order is not None:
        order.shuffle(hints)
    answers = await asyncio.gather(*(ask(client, url, body(h, graph.sampling[h.task])) for h in hints))
    return {hint.task: answer for hint, answer in zip(hints, answers, strict=True)}


def new_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=LIMIT, limits=httpx.Limits(max_connections=None))


def run_all(url: str, graphs: Sequence[Graph], *, at_once: int, seed: int = 0) -> list[dict[str, Answer]]:
    """Run graphs, `at_once` at a time; answers in the graphs' order.

    One by one, readers are submitted first; several at once, in a shuffled order.
    """

    async def main() -> list[dict[str, Answer]]:
        gate = asyncio.Semaphore(at_once)
        order = random.Random(seed) if at_once > 1 else None
        async with new_client() as client:

            async def one(graph: Graph) -> dict[str, Answer]:
                async with gate:
                    return await submit(client, url, graph, order)

            return list(await asyncio.gather(*(one(g) for g in graphs)))

    return asyncio.run(main())


def generate(url: str, prompts: Sequence[list[int]], sampling: Sequence[Mapping[str, Any]], **more: Any) -> list[Any]:
    """Ordinary requests, all at once, without streaming."""

    async def main() -> list[Any]:
        async with new_client() as client:

            async def one(ids: list[int], params: Mapping[str, Any]) -> Any:
                request = {"input_ids": ids, "sampling_params": dict(params), **more}
                response = await client.post(f"{url}/generate", json=request)
                response.raise_for_status()
                return response.json()

            return list(await asyncio.gather(*(one(i, s) for i, s in zip(prompts, sampling, strict=True))))

    return asyncio.run(main())
