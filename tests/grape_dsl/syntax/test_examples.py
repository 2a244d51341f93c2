"""The examples are programs without findings, and their inputs fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grape_dsl.checks import check
from grape_dsl.syntax import load
from grape_dsl.variables import VariableKind

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.flow"))
TASKS = {"search": 4, "code": 5, "summary": 3, "fan_in": 4}


def test_all_examples_are_here():
    assert {path.stem for path in EXAMPLES} >= set(TASKS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path):
    loaded = load(path)
    assert loaded.diagnostics == ()
    assert check(loaded.workflow) == []
    assert len(loaded.workflow.tasks) == TASKS.get(path.stem, len(loaded.workflow.tasks))
    inputs = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    declared = {v.name for v in loaded.workflow.variables.values() if v.kind is VariableKind.INPUT}
    assert set(inputs) == declared
    assert all(isinstance(text, str) for text in inputs.values())
    for task in loaded.workflow.tasks.values():
        options = loaded.workflow.options(task)
        assert options.temperature == 0
        assert options.max_tokens is not None
        assert 16 <= options.max_tokens <= 96
