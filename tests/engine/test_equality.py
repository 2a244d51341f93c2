"""The ids of every task equal stock SGLang's on the monolithic prompt, and prompts really stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path

import pytest

from grape_dsl.encoding import TextEncoder
from sglang_ext.settings import EngineSettings
from tests.engine.client import run_all
from tests.engine.graphs import random_graph
from tests.engine.reference import compare
from tests.engine.server import Server, serve
from tests.engine.streaming import Holes, check_streaming, early_beside_decodes

Encode = Callable[[str], list[int]]

# Pairwise over overlap, ranks, page size, chunk size, radix cache, mixed chunks, queue order.
SETTINGS: dict[str, list[str]] = {
    "overlap-mixed-page16-chunk64": ["--enable-mixed-chunk", "--page-size", "16", "--chunked-prefill-size", "64"],
    "no-overlap-page16": ["--disable-overlap-schedule", "--page-size", "16", "--chunked-prefill-size", "-1"],
    "no-overlap-no-radix-mixed": [
        "--disable-overlap-schedule",
        "--disable-radix-cache",
        "--enable-mixed-chunk",
        "--chunked-prefill-size",
        "96",
    ],
    "overlap-no-radix-page16-lpm": ["--disable-radix-cache", "--page-size", "16", "--schedule-policy", "lpm"],
    "tp2-overlap-mixed-lpm": ["--tp-size", "2", "--enable-mixed-chunk", "--schedule-policy", "lpm"],
    "tp2-no-overlap-chunk32": ["--tp-size", "2", "--disable-overlap-schedule", "--chunked-prefill-size", "32"],
}


def test_random_graphs_one_by_one(engine: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    graphs = [random_graph(seed, encode) for seed in range(30)]
    answers = run_all(engine.url, graphs, at_once=1)
    tally = compare(stock.url, graphs, answers, codec)
    events = engine.events()
    seen = [check_streaming(g, a, events, codec) for g, a in zip(graphs, answers, strict=True)]
    total = Holes(*(sum(column) for column in zip(*map(astuple, seen), strict=True)))
    print(f"\n{tally.tasks} tasks, {tally.tokens} tokens, near ties {tally.near_ties}; {total}")
    assert total.long >= total.all / 2
    assert total.two_chunks >= total.all / 3
    assert set(engine.counts().values()) == {0}


def test_32_runs_at_once(engine: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    graphs = [random_graph(1000 + seed, encode) for seed in range(32)]
    answers = run_all(engine.url, graphs, at_once=32)
    tally = compare(stock.url, graphs, answers, codec)
    print(f"\n{tally.tasks} tasks, {tally.tokens} tokens, near ties {tally.near_ties}")
    assert set(engine.counts().values()) == {0}


@pytest.fixture(scope="module", params=list(SETTINGS))
def setting(
    request: pytest.FixtureRequest, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("setting")
    environment = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1"} if "--tp-size" in SETTINGS[request.param] else {}
    with serve(tiny_model, folder, SETTINGS[request.param], environment=environment) as server:
        yield server


def test_settings(setting: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    graphs = [random_graph(2000 + seed, encode) for seed in range(16)]
    answers = run_all(setting.url, graphs[:4], at_once=1) + run_all(setting.url, graphs[4:], at_once=12)
    tally = compare(stock.url, graphs, answers, codec)
    print(f"\n{tally.tasks} tasks, {tally.tokens} tokens, near ties {tally.near_ties}")
    events = setting.events()
    page = 16 if "16" in setting.process.args else 1
    for graph, answer in zip(graphs[:4], answers[:4], strict=True):
        check_streaming(graph, answer, events, codec, page=page)
    assert early_beside_decodes(events) <= EngineSettings().prefill_budget
    assert set(setting.counts().values()) == {0}
