"""Names and reserved words."""

from __future__ import annotations

import pytest

from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.names import RESERVED, check_name, is_reserved
from grape_dsl.variables import InputVar
from grape_dsl.workflow import Workflow


@pytest.mark.parametrize("name", ["a", "_", "A_1", "strip", "question2", "add_", "from", "InputVar"])
def test_good_names(name: str):
    check_name(name, "variable")


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "é", "a\n", "x.y", *sorted(RESERVED), 3, None])
def test_bad_names(name):
    with pytest.raises(DiagnosticError) as error:
        check_name(name, "variable")
    (found,) = error.value.diagnostics
    assert found.code == "bad-name"
    assert repr(name) in found.message
    assert found.hint


def test_reserved():
    assert is_reserved("foreach")
    assert not is_reserved("each")


@pytest.mark.parametrize(
    "make", [lambda w: w.add_variable("if", InputVar), lambda w: w.add_task("1", "x", task_output="y")]
)
def test_the_model_refuses_bad_names(make):
    with pytest.raises(DiagnosticError, match="bad-name"):
        make(Workflow("w"))


def test_the_model_refuses_a_name_twice():
    made = Workflow("w")
    made.add_variable("x", InputVar)
    with pytest.raises(DiagnosticError, match="duplicate-name: variable 'x' is declared twice"):
        made.add_variable("x", InputVar)
    with pytest.raises(DiagnosticError, match="duplicate-name: task 'x' has the name of a variable"):
        made.add_task("x", "p", task_output="y")
