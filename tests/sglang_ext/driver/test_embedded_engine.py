"""Requests to SGLang's `Engine` in this process, with something else in its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from sglang_ext.driver.embedded_engine import EmbeddedEngine
from sglang_ext.driver.engine_client import Chunk, GenerateRequest
from sglang_ext.driver.errors import RequestRefused

FINISHED = {"output_ids": [1], "meta_info": {"finish_reason": {"type": "stop"}}}


class FakeSglang:
    """Gives its outputs, or raises those that are errors; `refuses` at once, as SGLang does with some arguments."""

    def __init__(self, *outputs: Any, refuses: Exception | None = None) -> None:
        self._outputs = outputs
        self._refuses = refuses

    async def async_generate(self, **arguments: Any) -> AsyncIterator[Any]:
        if self._refuses is not None:
            raise self._refuses
        return self._stream()

    async def _stream(self) -> AsyncIterator[Any]:
        for output in self._outputs:
            if isinstance(output, Exception):
                raise output
            yield output


def chunks(sglang: FakeSglang) -> list[Chunk]:
    async def read() -> list[Chunk]:
        engine = EmbeddedEngine("m")
        engine._engine = sglang
        return [chunk async for chunk in engine.generate(GenerateRequest("r", [1], {}))]

    return asyncio.run(read())


def test_chunks() -> None:
    assert [chunk.ids for chunk in chunks(FakeSglang(FINISHED))] == [(1,)]
    assert chunks(FakeSglang()) == []


@pytest.mark.parametrize(
    "sglang", [FakeSglang(refuses=ValueError("too long")), FakeSglang(ValueError("too long"))], ids=["call", "start"]
)
def test_what_sglang_refuses(sglang: FakeSglang) -> None:
    with pytest.raises(RequestRefused, match="too long") as error:
        chunks(sglang)
    assert error.value.status == 400


@pytest.mark.parametrize("lengths", [1, 2], ids=["first", "later"])
def test_a_fault_in_reading_is_no_refusal(lengths: int) -> None:
    bad = {"output_ids": [1], "meta_info": {"output_token_logprobs": [(0, 1)], "output_top_logprobs": [[], []]}}
    good = {"output_ids": [], "meta_info": {}}
    with pytest.raises(ValueError, match="zip"):
        chunks(FakeSglang(*[good] * (lengths - 1), bad))


def test_a_fault_in_a_stream_is_no_refusal() -> None:
    with pytest.raises(ValueError, match="bug"):
        chunks(FakeSglang({"output_ids": [], "meta_info": {}}, ValueError("bug")))
