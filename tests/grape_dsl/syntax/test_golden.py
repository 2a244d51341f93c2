"""Diagnostics as a user sees them. GRAPE_REWRITE_GOLDEN=1 writes the expected texts anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.rendering import render
from grape_dsl.syntax import parse_text

FOLDER = Path(__file__).parent / "golden"
PROGRAMS = sorted(FOLDER.glob("*.flow"))


def rendered(program: Path) -> str:
    text = program.read_text(encoding="utf-8")
    try:
        diagnostics = parse_text(text, program.name).diagnostics
    except DiagnosticError as error:
        diagnostics = error.diagnostics
    return render(diagnostics, {program.name: text})


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_golden(program: Path):
    expected = program.with_suffix(".txt")
    found = rendered(program)
    if os.environ.get("GRAPE_REWRITE_GOLDEN"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_every_text_has_its_program():
    assert {p.stem for p in FOLDER.glob("*.txt")} == {p.stem for p in PROGRAMS}
