"""Kinds of variables in `Workflow.add_variable`."""

from __future__ import annotations

import pytest

from grape_dsl import DiagnosticError, InputVar, Workflow
from grape_dsl.variables import Variable


def test_kinds_by_name() -> None:
    workflow = Workflow("tea")
    assert workflow.add_variable("topic", "InputVar") == Variable("topic", InputVar)
    with pytest.raises(DiagnosticError, match="'InputVariable' is no kind of variable") as caught:
        workflow.add_variable("other", "InputVariable")
    assert caught.value.diagnostics[0].hint == "did you mean 'InputVar' or 'OutputVar'?"
