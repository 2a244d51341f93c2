"""Fragments spliced into their readers."""

from __future__ import annotations

import pytest

from grape_dsl import fragments
from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.fragments import expand
from grape_dsl.prompt_reading import read_text
from grape_dsl.template import Reference
from grape_dsl.variables import InputVar, IntermediateVar
from grape_dsl.workflow import Workflow


def expanded(text: str, **values: str) -> tuple:
    made = Workflow("w")
    made.add_variable("q", InputVar)
    for name, value in values.items():
        made.add_variable(name, IntermediateVar, value=value)
    return expand(made, read_text(text)).parts


Q = Reference("q")


@pytest.mark.parametrize(
    ("text", "values", "parts"),
    [
        ("a {{q}}", {}, ("a ", Q)),
        ("a {{f}} b", {"f": "F {{q}}"}, ("a F ", Q, " b")),
        ("{{f}}{{f}}", {"f": "{{g}}.", "g": "[{{q}}]"}, ("[", Q, "].[", Q, "].")),
        ("a{{f}}b", {"f": ""}, ("ab",)),
        ("{{strip(f)}}", {"f": "  text \n"}, ("text",)),
        ("{{strip(f)}}", {"f": "{{q}}"}, (Reference("q", True),)),
        ("{{strip(f)}}", {"f": "{{g}}", "g": "{{strip(q)}}"}, (Reference("q", True),)),
        ("{{strip(f)}}", {"f": "{{g}}", "g": "  x "}, ("x",)),
        ("{{strip(f)}}", {"f": ""}, ()),
        ("{{unknown}}", {}, (Reference("unknown"),)),
    ],
)
def test_expand(text: str, values: dict[str, str], parts: tuple):
    assert expanded(text, **values) == parts


def test_values_with_braces_are_not_read_again():
    assert expanded("{{f}}", f='{{"{{q}}"}}') == ("{{q}}",)


def test_strip_of_a_mixed_fragment_is_refused():
    with pytest.raises(DiagnosticError) as error:
        expanded("{{strip(f)}}", f=" x {{q}}")
    assert error.value.diagnostics[0].code == "not-supported"
    assert "strip(f)" in error.value.diagnostics[0].message


def test_a_long_chain_needs_no_recursion():
    values = {f"f{i}": f"{{{{f{i + 1}}}}}" for i in range(5000)} | {"f5000": "end"}
    assert expanded("{{f0}}", **values) == ("end",)


def test_fragments_that_multiply_are_refused():
    values = {f"f{i}": f"{{{{f{i + 1}}}}}" * 10 for i in range(30)} | {"f30": "end"}
    with pytest.raises(DiagnosticError) as error:
        expanded("{{f0}}", **values)
    assert error.value.diagnostics[0].code == "too-large"
    assert f"{fragments.LARGEST:,}" in error.value.diagnostics[0].message
