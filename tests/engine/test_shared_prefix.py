"""A fixed prefix that several waiting tasks of a run share is computed once."""

from __future__ import annotations

import random
from collections.abc import Callable

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.hint import Known, OutputHole
from tests.engine.client import run_all
from tests.engine.graphs import build, text
from tests.engine.reference import compare
from tests.engine.server import Server


def test_siblings_share_their_fixed_prefix(
    engine: Server, stock: Server, codec: TextEncoder, encode: Callable[[str], list[int]]
) -> None:
    rng = random.Random(3)
    # Begins as no other test's text does, so that nothing of it is in the cache.
    shared = encode("Siblings share this. " + text(rng, 200))
    tasks = {"a": ([Known(ids=encode(text(rng, 20)))], {"max_new_tokens": 60, "ignore_eos": True})}
    for name in ("b", "c", "d"):
        own = Known(ids=[*shared, *encode(f" part {name}")])
        tasks[name] = ([own, OutputHole(task="a", weight=8), Known(ids=encode(" end"))], {"max_new_tokens": 8})  # type: ignore[assignment]
    graph = build(tasks)  # type: ignore[arg-type]
    (answers,) = run_all(engine.url, [graph], at_once=1)
    compare(stock.url, [graph], [answers], codec)
    pieces = [e for e in engine.events() if e["run"] == graph.run and e["event"] == "piece" and not e["streamed"]]
    computed = sum(e["end"] - e["start"] for e in pieces if e["start"] < len(shared))
    # A token or two of the start may be in the cache from another test.
    assert len(shared) - 4 <= computed <= 1.3 * len(shared)
    assert all(answers[name].meta["cached_tokens"] <= 4 for name in tasks), "early work shows up as a cache hit"
