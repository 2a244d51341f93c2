"""The same program through each door gives an equal graph."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from grape_dsl.compiler import compile
from grape_dsl.syntax import parse_text
from grape_dsl.workflow import Workflow
from tests.doors import from_python, rebuilt, to_flow, to_python
from tests.strategies import workflows


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)
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
