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
from tests.engine.scenarios import wait_for_nothing_left
from tests.engine.server import Server
from tests.engine.setting import SETTINGS, Setting
from tests.engine.streaming import Holes, check_streaming, early_beside_decodes

Encode = Callable[[str], list[int]]


def test_random_graphs_one_by_one(engine: Server, stock: Server, codec: TextEncoder, encode: Encode) -> None:
    graphs = [random_graph(seed, encode) for seed in range(20)]
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


# Each takes a minute or two. The others have each policy and each flag at least once, but for chunks of 32 and none.
SLOW = (
    "budget-no-overlap-no-radix-page16-lpm",
    "budget-tp2-no-overlap-no-radix-chunk32-forced",
    "deadline-no-overlap",
    "paper-tp2-overlap-page16-lpm",
)


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SETTINGS]
)
def served(
    request: pytest.FixtureRequest, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Setting, Server]]:
    setting = SETTINGS[request.param]
    if request.param == "scarce":
        yield setting, request.getfixturevalue("scarce")
        return
    with setting.serve(tiny_model, tmp_path_factory.mktemp("setting")) as server:
        yield setting, server


def test_settings(served: tuple[Setting, Server], stock: Server, codec: TextEncoder, encode: Encode) -> None:
    setting, server = served
    graphs = [random_graph(2000 + seed, encode) for seed in range(16)]
    answers = run_all(server.url, graphs[:4], at_once=1) + run_all(server.url, graphs[4:], at_once=12)
    tally = compare(stock.url, graphs, answers, codec)
    print(f"\n{tally.tasks} tasks, {tally.tokens} tokens, near ties {tally.near_ties}")
    events = server.events()
    if setting.streams_all:
        for graph, answer in zip(graphs[:4], answers[:4], strict=True):
            check_streaming(graph, answer, events, codec, page=setting.page)
        assert early_beside_decodes(events) <= EngineSettings().prefill_budget
    if setting.forced:
        assert any(event["event"] == "state" and event["note"] == "gave up its KV" for event in events)
    wait_for_nothing_left(server)
