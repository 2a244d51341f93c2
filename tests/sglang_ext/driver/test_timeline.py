"""The trace of runs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from grape_dsl.workflow import Workflow
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.timeline import Timeline
from tests.sglang_ext.fake_engine import FakeEngine


def trace_of(path: Path, workflow: Workflow, **options: Any) -> list[dict[str, Any]]:
    timeline = Timeline()
    with Engine(client=FakeEngine(path, lambda _: "abc"), **options) as engine:
        for index in range(2):
            for event in engine.stream_events(workflow, question="q", index=index):
                timeline.take(event)
    trace = timeline.trace()
    events: list[dict[str, Any]] = trace["traceEvents"]
    return events


def slices(events: list[dict[str, Any]], process: int, thread: int) -> list[tuple[str, int, int]]:
    return [(e["name"], e["ts"], e["dur"]) for e in events if (e["ph"], e["pid"], e["tid"]) == ("X", process, thread)]


def test_a_track_per_task_with_the_engines_pieces(tokenizer_path: Path, chain: Workflow) -> None:
    events = trace_of(tokenizer_path, chain)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {
        (run + 1, task): name
        for run in range(2)
        for task, name in enumerate((f"run {run}", "rewrite", "reply", "check"))
    }
    found = slices(events, 1, 3)
    assert [name for name, _, _ in found] == ["waiting", "early prefill", "waiting", "prefill", "decode"]
    # The engine says: submitted 100.0, pieces from 100.05 and 100.2, first token 100.3, end 100.4.
    starts = [start for _, start, _ in found]
    assert [b - starts[1] for b in starts[1:]] == pytest.approx([0, 50_000, 150_000, 250_000], abs=2)
    assert all(a + length <= b + 2 for (_, a, length), (_, b, _) in itertools.pairwise(found))
    assert slices(events, 1, 1)[0][1] < slices(events, 2, 1)[0][1]  # the second run began later


def test_without_figures_of_the_engine(tokenizer_path: Path, chain: Workflow) -> None:
    found = slices(trace_of(tokenizer_path, chain, streaming="off"), 1, 2)
    assert [name for name, _, _ in found] == ["waiting and prefill", "decode"]
