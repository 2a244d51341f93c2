"""What is refused of a program without an engine."""

from __future__ import annotations

import pytest

from grape_dsl.variables import OutputVar
from grape_dsl.workflow import Workflow
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.run_factory import check_program


@pytest.mark.parametrize(
    ("prompt", "stop", "message"),
    [
        ("go \ud800", None, r"task 'only': its prompt \('go \\ud800'\) has U\+D800 at character 4"),
        ("go", ["x", "\udfff"], r"task 'only': a stop text \('\\udfff'\) has U\+DFFF at character 1"),
    ],
)
def test_texts_that_utf_8_cannot_hold(prompt: str, stop: list[str] | None, message: str) -> None:
    workflow = Workflow("one")
    workflow.add_variable("out", OutputVar)
    workflow.add_task("only", prompt, task_output="out", **({"stop": stop} if stop else {}))
    with pytest.raises(InputError, match=message):
        check_program(workflow)
