"""Faults that other systems had with an output on its way into a prompt, each by name."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.hint import Known, OutputHole, Strip
from tests.engine.client import ask, body, new_client, run_all, stream
from tests.engine.graphs import build, text
from tests.engine.reference import compare, reader_output
from tests.engine.scenarios import Encode, known, pair, wait_for_nothing_left
from tests.engine.server import Server

CONTEXT = 4096


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
