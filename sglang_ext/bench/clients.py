"""Three ways to run the chain: B held by the engine, and two clients that send B when A has ended."""

from __future__ import annotations

import secrets
import time
from typing import Any, Protocol

from sglang_ext.bench.chain import ChainShape, ChainText
from sglang_ext.bench.sample import Sample
from sglang_ext.bench.together import together
from sglang_ext.bench.token_stream import TokenSource, TokenStream
from sglang_ext.driver.engine_client import GenerateRequest
from sglang_ext.tasks.hint import Known, OutputHole, TaskHint, envelope, input_ids, new_run_id, request_id

PREWARM_TOKENS = 16


class ChainClient(Protocol):
    async def run(self, source: TokenSource, shape: ChainShape, text: ChainText) -> Sample:
        """Run one chain. Raises EngineError if a request fails or gives another number of tokens."""


class HeldClient:
    """Submits both tasks at once, as Grape's driver does; the engine completes B's prompt.

    Args:
        weight: tokens per streamed chunk.
    """

    def __init__(self, weight: int) -> None:
        self._weight = weight

    async def run(self, source: TokenSource, shape: ChainShape, text: ChainText) -> Sample:
        run = new_run_id()
        known = [Known(ids=text.known)] if text.known else []
        hints = (
            TaskHint(run=run, task="A", index=0, tasks=2, readers=["B"], segments=[Known(ids=text.start)]),
            TaskHint(
                run=run,
                task="B",
                index=1,
                tasks=2,
                segments=[*known, OutputHole(task="A", weight=self._weight), Known(ids=text.suffix)],
            ),
        )
        a, b = TokenStream("A", shape.output), TokenStream("B", shape.answer)
        submitted = time.monotonic()
        async with together() as tasks:
            tasks.create_task(a.read(source, _held(hints[0], shape.output)))
            tasks.create_task(b.read(source, _held(hints[1], shape.answer)))
        return Sample.of(submitted, a, b)


class PlainClient:
    """Sends A, and B when A has ended."""

    async def run(self, source: TokenSource, shape: ChainShape, text: ChainText) -> Sample:
        a, b = TokenStream("A", shape.output), TokenStream("B", shape.answer)
        submitted = time.monotonic()
        await a.read(source, _ordinary(text.start, shape.output))
        await b.read(source, _ordinary([*text.known, *a.ids, *text.suffix], shape.answer))
        return Sample.of(submitted, a, b)


class PrewarmClient:
    """The plain client, which also fills the prefix cache while A streams.

    Once A's first token is there it sends B's known text, then the longer prefix after each further
    `every` tokens, as requests for no output. One is under way at a time, since two would compute the same
    tokens twice. When A ends B is sent at once.
    """

    def __init__(self, every: int = PREWARM_TOKENS) -> None:
        self._every = every

    async def run(self, source: TokenSource, shape: ChainShape, text: ChainText) -> Sample:
        a, b = TokenStream("A", shape.output), TokenStream("B", shape.answer)
        submitted = time.monotonic()
        async with together() as tasks:
            tasks.create_task(self._prewarm(source, text.known, a))
            await a.read(source, _ordinary(text.start, shape.output))
            await b.read(source, _ordinary([*text.known, *a.ids, *text.suffix], shape.answer))
        return Sample.of(submitted, a, b)

    async def _prewarm(self, source: TokenSource, known: list[int], a: TokenStream) -> None:
        await a.wait_for(1)
        if known:
            await TokenStream("prewarm", 0).read(source, _ordinary(known, 0))
        sent = 0
        while await a.wait_for(sent + self._every):
            sent = len(a.ids) // self._every * self._every
            await TokenStream("prewarm", 0).read(source, _ordinary([*known, *a.ids[:sent]], 0))


def _ordinary(ids: list[int], tokens: int) -> GenerateRequest:
    return GenerateRequest(secrets.token_hex(16), ids, _sampling(tokens))


def _held(hint: TaskHint, tokens: int) -> GenerateRequest:
    return GenerateRequest(
        request_id(hint.run, hint.index), input_ids(hint.segments), _sampling(tokens), envelope(hint)
    )


def _sampling(tokens: int) -> dict[str, Any]:
    """Greedy, and of a forced length, so that every arm does the same work."""
    return {"temperature": 0.0, "max_new_tokens": tokens, "ignore_eos": True}
