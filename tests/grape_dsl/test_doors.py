"""The same program through each door gives an equal graph."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from hypothesis import given, settings

from grape_dsl.compiler import compile
from grape_dsl.syntax import load, parse_text
from grape_dsl.workflow import Workflow
from tests.doors import from_python, rebuilt, to_flow, to_python
from tests.strategies import workflows

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.flow"))


@settings(max_examples=120, deadline=None)
@given(workflows())
def test_random_programs(program: Workflow):
    graph = compile(program).graph
    parsed = parse_text(to_flow(program)).workflow
    assert parsed == program
    assert compile(parsed).graph == graph
    called = rebuilt(program)
    assert called == program
    assert compile(called).graph == graph
    assert compile(from_python(to_python(program))).graph == graph


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path):
    """`NAME.flow`, its twin `NAME.py`, which has a workflow NAME, and the same by calls."""
    program = load(path).workflow
    twin = runpy.run_path(str(path.with_suffix(".py")))[path.stem]
    assert (twin.about, twin.defaults) == (program.about, program.defaults)
    assert rebuilt(program) == program
    graph = compile(program).graph
    assert compile(twin).graph == graph
    assert compile(rebuilt(program)).graph == graph


def test_every_example_has_a_twin():
    assert EXAMPLES
    assert {path.stem for path in EXAMPLES} == {path.stem for path in EXAMPLES[0].parent.glob("*.py")}
