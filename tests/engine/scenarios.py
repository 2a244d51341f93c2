"""Small graphs that tests of faults share, and what must hold of an engine after them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.hint import Known, OutputHole
from tests.engine.client import run_all
from tests.engine.graphs import Graph, build, random_graph, text
from tests.engine.reference import compare
from tests.engine.server import Server

Encode = Callable[[str], list[int]]


def known(encode: Encode, words: int, seed: int = 0) -> Known:
    return Known(ids=encode(text(random.Random(seed), words)))


def pair(encode: Encode, *, tokens: int = 120, weight: int = 4, before: int = 40, **params: Any) -> Graph:
    """A -> B, fixed text around the hole."""
    hole = OutputHole(task="a", weight=weight)
    return build(
        {
            "a": ([known(encode, 20)], {"max_new_tokens": tokens, "ignore_eos": True, **params}),
            "b": ([known(encode, before, 1), hole, known(encode, 4, 2)], {"max_new_tokens": 12}),
        }
    )


def chain(encode: Encode, length: int, tokens: int) -> Graph:
    tasks: dict[str, Any] = {"t0": ([known(encode, 20)], {"max_new_tokens": tokens, "ignore_eos": True})}
    for i in range(1, length):
        segments = [known(encode, 30, i), OutputHole(task=f"t{i - 1}", weight=8), known(encode, 3, i)]
        tasks[f"t{i}"] = (segments, {"max_new_tokens": tokens, "ignore_eos": True})
    return build(tasks)


def of_run(server: Server, graph: Graph) -> list[dict[str, Any]]:
    """What the event log has of one run."""
    return [event for event in server.events() if event["run"] == graph.run]


def wait_for_nothing_left(server: Server, limit: float = 15.0) -> None:
    until = time.monotonic() + limit
    while set(server.counts().values()) != {0}:
        assert server.alive(), server.tail()
        assert time.monotonic() < until, server.counts()
        time.sleep(0.1)


def check_alive_and_right(server: Server, stock: Server, codec: TextEncoder, encode: Encode, seed: int) -> None:
    """Nothing is left of earlier runs, SGLang's own idle check passed, and a new run is right."""
    wait_for_nothing_left(server)
    time.sleep(0.2)
    assert server.alive(), server.tail()
    graph = random_graph(seed, encode)
    compare(stock.url, [graph], run_all(server.url, [graph], at_once=1), codec)
