"""The examples on the embedded model: streamed, they give what stock SGLang gives on the whole prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sglang_ext
from grape_dsl.compiler import compile as compile_workflow
from grape_dsl.syntax import load
from tests.engine.server import serve

# Two engines with a real model in float32, minutes on two cores.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("search", "code", "summary", "fan_in")
WEIGHT = 4

Records = dict[str, Any]


def run_examples(**engine_options: Any) -> Records:
    records = {}
    with sglang_ext.Engine(**engine_options) as engine:
        for name in NAMES:
            compiled = compile_workflow(load(EXAMPLES / f"{name}.flow").workflow, edge_weight=WEIGHT)
            inputs = json.loads((EXAMPLES / f"{name}.json").read_text())
            records[name] = engine.run(compiled, inputs)
    return records


@pytest.fixture(scope="module")
def streamed(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Records:
    with serve(embedded_model, tmp_path_factory.mktemp("streamed"), ["--enable-mixed-chunk"]) as server:
        return run_examples(url=server.url, edge_weight=WEIGHT)


@pytest.fixture(scope="module")
def reference(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Stock SGLang, each task submitted whole when its inputs are there."""
    with serve(embedded_model, tmp_path_factory.mktemp("whole"), stock=True) as server:
        return run_examples(url=server.url, streaming="off", plugin=False)


@pytest.mark.parametrize("name", NAMES)
def test_equal_ids(name: str, streamed: Records, reference: Records) -> None:
    ours, theirs = streamed[name].tasks, reference[name].tasks
    assert ours.keys() == theirs.keys()
    for task in ours:
        assert ours[task].output_ids == theirs[task].output_ids, task
    assert streamed[name].outputs == reference[name].outputs


@pytest.mark.parametrize("name", NAMES)
def test_prompts_were_prefilled_while_upstreams_decoded(name: str, streamed: Records) -> None:
    graph = compile_workflow(load(EXAMPLES / f"{name}.flow").workflow).graph
    tasks = streamed[name].tasks
    for task, record in tasks.items():
        sources = [node.source.task for node in graph.chain(task) if node.source is not None]
        if not sources:
            assert record.early_tokens == 0
            continue
        longest = max(len(tasks[source].output_ids) for source in sources)
        if longest >= 3 * WEIGHT:
            assert record.early_chunks >= 2, task
        assert record.early_tokens + record.cached_tokens > 0, task


def test_outputs_are_text(streamed: Records) -> None:
    for name in NAMES:
        assert all(str(value).strip() for value in streamed[name].outputs.values()), name
