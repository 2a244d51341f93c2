"""Diagnostics as a user sees them. GRAPE_REWRITE_GOLDEN=1 writes the expected texts anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.rendering import render
from grape_dsl.syntax import parse_text
from grape_dsl.syntax.source import decode_source

FOLDER = Path(__file__).parent / "golden"
PROGRAMS = sorted(FOLDER.glob("*.flow"))


def rendered(program: Path) -> str:
    sources: dict[str | None, str] = {}
    try:
        sources[program.name] = text = decode_source(program.read_bytes(), program.name).text
        diagnostics = parse_text(text, program.name).diagnostics
    except DiagnosticError as error:
        diagnostics = error.diagnostics
    return render(diagnostics, sources)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_golden(program: Path):
    expected = program.with_suffix(".txt")
    found = rendered(program)
    if os.environ.get("GRAPE_REWRITE_GOLDEN"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_every_text_has_its_program():
    assert {p.stem for p in FOLDER.glob("*.txt")} == {p.stem for p in PROGRAMS}


def test_every_code_is_in_the_language_reference():
    reference = (Path(__file__).parents[3] / "docs" / "language.md").read_text(encoding="utf-8")
    documented = {
        code for line in reference.splitlines() if line.startswith("| `") for code in re.findall(r"`([\w-]+)`", line)
    }
    shown = {
        code for p in FOLDER.glob("*.txt") for code in re.findall(r"^\S+ \w+\[([\w-]+)\]", p.read_text("utf-8"), re.M)
    }
    assert len(shown) > 30
    assert shown <= documented


def test_the_reference_begins_with_a_program_that_works():
    reference = (Path(__file__).parents[3] / "docs" / "language.md").read_text(encoding="utf-8")
    assert parse_text(reference.split("```")[1]).diagnostics == ()
