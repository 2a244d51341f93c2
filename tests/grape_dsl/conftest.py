"""Programs for the tests of the compiler."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grape_dsl.compiler import compile
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.prompt_reading import PromptLike
from grape_dsl.variables import InputVar, OutputVar
from grape_dsl.workflow import Workflow

Graph = Callable[..., MicroTaskGraph]


@pytest.fixture
def graph_of() -> Graph:
    """`graph_of({"a": prompt, ...}, b=20)`: task `a` writes `a_out` from input `q`; `b` has `max_tokens` 20."""

    def make(prompts: dict[str, PromptLike], **max_tokens: int) -> MicroTaskGraph:
        made = Workflow("made")
        made.add_variable("q", InputVar)
        made.add_task("uses_q", "{{q}}", task_output="uses_q_out")
        made.add_variable("uses_q_out", OutputVar)
        for name, prompt in prompts.items():
            made.add_variable(f"{name}_out", OutputVar)
            made.add_task(name, prompt, task_output=f"{name}_out", max_tokens=max_tokens.get(name))
        return compile(made).graph

    return make
