"""Diagnostics: what is wrong in a program, as objects.

Every door (`.flow` text, decorators, `Workflow` in Python) reports through these classes;
`grape_dsl.rendering` turns them into text or JSON, and nothing else does.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text.

    `start` and `end` are character offsets into the decoded text (`end` left out); `line` and
    `column` count from 1. `file` is the path as the user gave it, None for text without a file.
    """

    file: str | None
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that belongs to a diagnostic, such as the other writer of a variable."""

    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Args:
        code: a stable slug, such as `unknown-name`; docs/language.md lists them.
        message: what, where and which rule, with what was received.
        span: where; None for a program without source text.
        hint: what to do, one sentence; None if the message says it.
        related: further places.
    """

    code: str
    message: str
    span: Span | None = None
    hint: str | None = None
    related: tuple[Related, ...] = ()
    severity: Severity = Severity.ERROR

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


class DiagnosticError(Exception):
    """A program was refused. `diagnostics` holds every finding, errors and warnings, in source order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n".join(_one_line(d) for d in self.diagnostics))


def _one_line(diagnostic: Diagnostic) -> str:
    hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
    return f"{diagnostic.code}: {diagnostic.message}{hint}"


def nearest(name: str, valid: Iterable[str], limit: int = 3) -> list[str]:
    """The valid names closest to `name`, best first, at most `limit`."""
    return difflib.get_close_matches(name, sorted(valid), n=limit, cutoff=0.5)


def naming_hint(name: str, valid: Sequence[str] | Iterable[str], what: str) -> str:
    """A hint for an unknown `name`: the nearest valid names, else the list of them."""
    known = sorted(valid)
    close = nearest(name, known)
    if close:
        return f"did you mean {' or '.join(repr(c) for c in close)}?"
    if not known:
        return f"there are no {what} yet"
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f"known {what}: {shown}"
