"""Diagnostics as text with source lines and carets, and as JSON. Nothing else renders them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from grape_dsl.diagnostics import Diagnostic, Related, Severity, Span

TAB_WIDTH = 4
WIDEST_LINE = 160

_RESET, _BOLD, _RED, _YELLOW, _BLUE = "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[34m"


def render(diagnostics: Iterable[Diagnostic], sources: Mapping[str | None, str], color: bool = False) -> str:
    """Diagnostics for people, one block each, with an empty line between.

    Args:
        sources: the text that spans count in, by `Span.file`; where it is missing no source line is shown.
        color: use ANSI colours.
    """
    renderer = _Renderer(sources, color)
    return "\n".join(renderer.block(diagnostic) for diagnostic in diagnostics)


def to_json(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics as plain dicts: `severity`, `code`, `message`, `file`, `span`, `hint`, `related`.

    A span has `start`, `end` (character offsets, end left out) and `line`, `column`, `end_line`,
    `end_column` (from 1). What is not known is None.
    """
    return [
        {
            "severity": str(diagnostic.severity),
            "code": diagnostic.code,
            "message": diagnostic.message,
            **_place(diagnostic.span),
            "hint": diagnostic.hint,
            "related": [{"message": r.message, **_place(r.span)} for r in diagnostic.related],
        }
        for diagnostic in diagnostics
    ]


def _place(span: Span | None) -> dict[str, Any]:
    if span is None:
        return {"file": None, "span": None}
    names = ("start", "end", "line", "column", "end_line", "end_column")
    return {"file": span.file, "span": {name: getattr(span, name) for name in names}}


class _Renderer:
    def __init__(self, sources: Mapping[str | None, str], color: bool) -> None:
        self._sources = sources
        self._color = color

    def block(self, diagnostic: Diagnostic) -> str:
        tint = _RED if diagnostic.severity is Severity.ERROR else _YELLOW
        label = self._paint(f"{diagnostic.severity}[{diagnostic.code}]", tint)
        lines = [f"{self._where(diagnostic.span)}{label}: {self._paint(diagnostic.message, _BOLD)}"]
        lines += self._excerpt(diagnostic.span, tint)
        for related in diagnostic.related:
            lines += self._related(related)
        if diagnostic.hint:
            lines.append(f"  {self._paint('hint', _BLUE)}: {diagnostic.hint}")
        return "\n".join(lines) + "\n"

    def _related(self, related: Related) -> list[str]:
        return [f"  {self._where(related.span)}{related.message}", *self._excerpt(related.span, _BLUE)]

    def _paint(self, text: str, tint: str) -> str:
        return f"{tint}{text}{_RESET}" if self._color else text

    def _where(self, span: Span | None) -> str:
        if span is None:
            return ""
        return f"{span.file or '<text>'}:{span.line}:{span.column}: "

    def _excerpt(self, span: Span | None, tint: str) -> list[str]:
        """The line where `span` begins, and carets under its part of it."""
        if span is None or span.file not in self._sources:
            return []
        text = self._sources[span.file]
        line_start = span.start - span.column + 1
        line_end = text.find("\n", line_start)
        line = text[line_start : line_end if line_end >= 0 else len(text)]
        begin = span.column - 1
        end = max(begin + 1, min(span.end - line_start, len(line)))
        if len(line) > WIDEST_LINE:
            cut = max(0, begin - WIDEST_LINE // 4)
            line, begin, end = line[cut : cut + WIDEST_LINE], begin - cut, min(end - cut, WIDEST_LINE)
        margin = str(span.line)
        before, marked = _shown(line[:begin]), _shown(line[begin:end])
        carets = "^" * max(1, _width(marked))
        gap = " " * _width(before)
        empty = " " * len(margin)
        return [
            f"  {margin} | {before}{marked}{_shown(line[end:])}".rstrip(),
            f"  {empty} | {gap}{self._paint(carets, tint)}",
        ]


def _shown(text: str) -> str:
    """Text as it is printed: tabs become blanks, other control characters a replacement mark."""
    text = text.replace("\t", " " * TAB_WIDTH)
    return "".join("\ufffd" if unicodedata.category(c) == "Cc" else c for c in text)


def _width(text: str) -> int:
    """Columns that text takes in a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
