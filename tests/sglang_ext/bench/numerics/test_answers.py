"""Asking a model that is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from grape_dsl.encoding import ChatEncoder
from sglang_ext.bench.numerics.answers import AT_ONCE, GREEDY, SEEDED, plain, streamed
from sglang_ext.bench.numerics.prompts import TOP, works
from sglang_ext.bench.run_work import RunWork
from sglang_ext.driver.engine_client import Chunk, GenerateRequest
from sglang_ext.driver.errors import EngineError


class Model:
    """Writes so many tokens as it is asked for: 100, 101, ... Args: prompt_tokens: that it says of held tasks."""

    def __init__(self, prompt_tokens: int = 0) -> None:
        self.requests: list[GenerateRequest] = []
        self.most_at_once = self._now = 0
        self._prompt_tokens = prompt_tokens

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(0)
        meta = {
            "output_top_logprobs": [[[-0.5, 100, None], [-1.5, 7, None]]],
            "prompt_tokens": self._prompt_tokens,
            "grape": [{"early_tokens": 9, "early_chunks": 2}],
        }
        ids = tuple(range(100, 100 + request.sampling["max_new_tokens"]))
        self._now -= 1
        yield Chunk(ids, {"type": "length"}, meta)


@pytest.fixture
def runs(embedded_model: Path) -> list[RunWork]:
    return works(3, None, ChatEncoder.from_folder(embedded_model), 16, note=5, answer=4)


def test_plain_prompts_in_their_order_and_not_all_at_once():
    model, done = Model(), []
    prompts = [[n] for n in range(3 * AT_ONCE)]
    answers = asyncio.run(plain(model, prompts, 4, GREEDY, lambda: done.append(1)))
    assert [request.input_ids for request in model.requests] == prompts
    assert all(answer.ids == [100, 101, 102, 103] and answer.top == {100: -0.5, 7: -1.5} for answer in answers)
    assert len(done) == len(prompts)
    assert model.most_at_once <= AT_ONCE
    assert {request.logprobs for request in model.requests} == {TOP}


def test_a_streamed_prompt_is_that_of_the_ids_that_came_back(runs):
    length = _prompt_length(runs[0])
    model = Model(length)
    (found,) = asyncio.run(streamed(model, runs[:1], SEEDED, lambda: None))
    assert len(found.prompt) == length
    place = found.prompt.index(100)
    assert found.prompt[place : place + 5] == [100, 101, 102, 103, 104]
    assert (found.early_tokens, found.early_chunks) == (9, 2)
    writer, reader = sorted(model.requests, key=lambda request: request.rid)
    assert writer.sampling["temperature"] == 0 and reader.sampling["sampling_seed"] == SEEDED["sampling_seed"]
    assert reader.logprobs == TOP


def test_a_prompt_of_another_length_is_refused(runs):
    with pytest.raises(EngineError, match="a streamed prompt has 3 tokens"):
        asyncio.run(streamed(Model(3), runs[:1], GREEDY, lambda: None))


def _prompt_length(work: RunWork) -> int:
    from sglang_ext.tasks.hint import Known

    plan = work.plans["reader"]
    return sum(len(s.ids) if isinstance(s, Known) else work.outputs[s.task] for s in plan.segments)
