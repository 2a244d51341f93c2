"""What an engine answers to the prompts."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.numerics.prompts import READER, TOP, WRITER
from sglang_ext.bench.run_work import RunStreams, RunWork
from sglang_ext.bench.together import together
from sglang_ext.bench.token_stream import TokenSource, TokenStream
from sglang_ext.driver.engine_client import GenerateRequest
from sglang_ext.driver.errors import EngineError
from sglang_ext.driver.requests import complete_request, held_request
from sglang_ext.tasks.hint import new_run_id

Sampling = Mapping[str, Any]
Result = TypeVar("Result")
GREEDY: Sampling = {"temperature": 0.0}
SEEDED: Sampling = {"temperature": 1.0, "sampling_seed": 7}
AT_ONCE = 16
"""Runs, or prompts, at once."""


class Answer(BaseModel):
    """Args:
    ids: output tokens.
    top: logprobs of the tokens that were most likely to come first, by id.
    """

    model_config = ConfigDict(frozen=True)

    ids: list[int]
    top: dict[int, float]

    @classmethod
    def of(cls, stream: TokenStream) -> Answer:
        (first, *_) = stream.meta["output_top_logprobs"]
        return cls(ids=stream.ids, top={token: logprob for logprob, token, *_ in first})


class Streamed(BaseModel):
    """Args:
    prompt: ids of the reader's whole prompt.
    early_tokens, early_chunks: of it were in KV before the writer's last token was known.
    """

    model_config = ConfigDict(frozen=True)

    prompt: list[int]
    answer: Answer
    early_tokens: int
    early_chunks: int


async def streamed(
    source: TokenSource, works: Sequence[RunWork], sampling: Sampling, advance: Callable[[], None]
) -> list[Streamed]:
    """Both tasks of each run submitted at once, the writer greedy. Raises EngineError."""
    return await _some_at_once([partial(_run, source, work, sampling) for work in works], advance)


async def _run(source: TokenSource, work: RunWork, sampling: Sampling) -> Streamed:
    streams = RunStreams(new_run_id(), work)
    async with together() as tasks:
        for name, plan in work.plans.items():
            request = held_request(streams.run, plan, len(work.plans))
            own = _of_length(GREEDY if name == WRITER else sampling, work.outputs[name])
            tasks.create_task(streams.by_task[name].read(source, replace(request, sampling=own)))
    prompt = complete_request(streams.run, work.plans[READER], streams.finished()).input_ids
    reader = streams.by_task[READER]
    if reader.meta["prompt_tokens"] != len(prompt):
        found = reader.meta["prompt_tokens"]
        raise EngineError(f"a streamed prompt has {found} tokens, that of the ids that came back has {len(prompt)}")
    (figures, *_) = reader.meta["grape"]
    return Streamed(
        prompt=prompt,
        answer=Answer.of(reader),
        early_tokens=figures["early_tokens"],
        early_chunks=figures["early_chunks"],
    )


async def plain(
    source: TokenSource, prompts: Sequence[list[int]], tokens: int, sampling: Sampling, advance: Callable[[], None]
) -> list[Answer]:
    """Ordinary requests. Raises EngineError."""
    return await _some_at_once([partial(_ask, source, prompt, tokens, sampling) for prompt in prompts], advance)


async def _ask(source: TokenSource, prompt: list[int], tokens: int, sampling: Sampling) -> Answer:
    stream = TokenStream("with a whole prompt", tokens)
    sampled = _of_length(sampling, tokens)
    await stream.read(source, GenerateRequest(secrets.token_hex(16) + ".", prompt, sampled, logprobs=TOP))
    return Answer.of(stream)


async def _some_at_once(calls: Sequence[Callable[[], Awaitable[Result]]], advance: Callable[[], None]) -> list[Result]:
    """The results in the order of the calls."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(call: Callable[[], Awaitable[Result]]) -> Result:
        async with gate:
            found = await call()
            advance()
            return found

    async with together() as tasks:
        running = [tasks.create_task(one(call)) for call in calls]
    return [task.result() for task in running]


def _of_length(sampling: Sampling, tokens: int) -> dict[str, Any]:
    return {**sampling, "max_new_tokens": tokens, "ignore_eos": True}
