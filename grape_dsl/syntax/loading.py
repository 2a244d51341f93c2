"""From a file or text to a checked workflow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from grape_dsl.checks import SINGLE_BRACES, check
from grape_dsl.diagnostics import Diagnostic, DiagnosticError
from grape_dsl.syntax.build import Built, build
from grape_dsl.syntax.parser import Parsed, parse
from grape_dsl.syntax.source import SourceText, read_source
from grape_dsl.workflow import Workflow

_NEED_ALL_STATEMENTS = frozenset({"unused-variable", "unreachable-task", "no-writer", "no-tasks"})
"""Findings that a statement left out may cause."""


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """A program without errors. `diagnostics` are its warnings; `source` is the text that their spans count in."""

    workflow: Workflow
    diagnostics: tuple[Diagnostic, ...]
    source: str


def load(path: str | Path) -> LoadedProgram:
    """Read the .flow file at `path`.

    Raises:
        DiagnosticError: the file cannot be read, or the program has errors.
    """
    return _load(read_source(path))


def parse_text(text: str, file: str | None = None) -> LoadedProgram:
    """Read a program from `text`; `file` is its name in diagnostics.

    Raises:
        DiagnosticError: the program has errors.
    """
    return _load(SourceText.of(text, file))


def _load(source: SourceText) -> LoadedProgram:
    if not source.text.strip():
        what = f"{source.file or 'the program'} is empty"
        raise DiagnosticError([Diagnostic("empty-program", what, hint="a program begins with `workflow NAME`")])
    parsed = parse(source)
    built = build(source, parsed)
    found = [*parsed.diagnostics, *built.diagnostics]
    found += _whole_program(source, parsed, built, found)
    found.sort(key=lambda d: (d.span.start, d.span.end) if d.span else (0, 0))
    if any(diagnostic.is_error for diagnostic in found):
        raise DiagnosticError(found)
    return LoadedProgram(built.workflow, tuple(found), source.text)


def _whole_program(source: SourceText, parsed: Parsed, built: Built, found: list[Diagnostic]) -> list[Diagnostic]:
    """What `check` finds, less what only follows from an error that is already reported."""
    diagnostics = [_narrowed(source, d) for d in check(built.workflow, also_known=parsed.lost | built.dropped)]
    if not any(diagnostic.is_error for diagnostic in found):
        return diagnostics
    return [diagnostic for diagnostic in diagnostics if diagnostic.code not in _NEED_ALL_STATEMENTS]


def _narrowed(source: SourceText, diagnostic: Diagnostic) -> Diagnostic:
    """A finding about `{name}`, which knows its template only, moved to the braces themselves."""
    if diagnostic.code != "single-braces" or diagnostic.span is None:
        return diagnostic
    found = SINGLE_BRACES.search(source.text, diagnostic.span.start, diagnostic.span.end)
    while found is not None and repr(found[1]) not in diagnostic.message:
        found = SINGLE_BRACES.search(source.text, found.end(), diagnostic.span.end)
    return diagnostic if found is None else replace(diagnostic, span=source.span(found.start(), found.end()))
