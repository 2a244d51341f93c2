"""Text literals: from what stands between the quotes to the text that is meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from grape_dsl.diagnostics import Diagnostic
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.tree import Text

Report = Callable[[Diagnostic], None]

_SIMPLE = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,8})\}|(.))", re.DOTALL)
_OPENING_LINE = re.compile(r"[ \t]*\n")
_CLOSING_LINE = re.compile(r"(?:\A|\n)[ \t]*\Z")


@dataclass(frozen=True, slots=True)
class Literal:
    """How the pieces of one literal turn into text.

    `start` and `end` are the offsets of what counts: a long text's first newline and its closing
    line are outside. `indent` goes away at the start of each line.
    """

    start: int
    end: int
    indent: str
    has_escapes: bool


def measure(node: Text) -> Literal:
    """The extent and common indent of a literal."""
    start, end = node.body
    if not node.is_long:
        return Literal(start, end, "", True)
    raw = node.raw
    opening = _OPENING_LINE.match(raw)
    skipped = opening.end() if opening else 0
    closing = _CLOSING_LINE.search(raw, max(skipped, raw.rfind("\n")), len(raw))
    kept = max(skipped, closing.start()) if closing else len(raw)
    lines = raw[skipped:kept].split("\n")
    if not opening:
        lines = lines[1:]  # the first line stands behind the quotes and has no indent of its own
    return Literal(start + skipped, start + kept, _common_indent(lines), False)


def _common_indent(lines: list[str]) -> str:
    common: str | None = None
    for line in lines:
        body = line.lstrip(" \t")
        if not body:
            continue
        indent = line[: len(line) - len(body)]
        if common is None or common.startswith(indent):
            common = indent
        elif not indent.startswith(common):
            same = 0
            while indent[same] == common[same]:
                same += 1
            common = common[:same]
    return common or ""


def cook(source: SourceText, literal: Literal, start: int, end: int, report: Report) -> str:
    """The text meant by the characters `start` to `end` of a literal, which has no tag there."""
    raw = source.text[start:end]
    if literal.has_escapes:
        return _unescape(source, raw, start, report) if "\\" in raw else raw
    if not literal.indent and "\n" not in raw:
        return raw
    at_line_start = start == 0 or source.text[start - 1] == "\n"
    return _dedent(raw, literal.indent, at_line_start)


def _dedent(raw: str, indent: str, at_line_start: bool) -> str:
    lines = raw.split("\n")
    for number, line in enumerate(lines):
        if number == 0 and not at_line_start:
            continue
        if line.startswith(indent):
            lines[number] = line[len(indent) :]
        elif number < len(lines) - 1 or not line.strip():
            lines[number] = line.lstrip(" \t")  # a blank line shorter than the indent
    return "\n".join(lines)


def _unescape(source: SourceText, raw: str, start: int, report: Report) -> str:
    def replace(match: re.Match[str]) -> str:
        code, simple = match[1], match[2]
        if code is not None and (int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) <= 0xDFFF):
            report(_bad_escape(source, start + match.start(), match[0], "there is no such character", None))
            return ""
        if code is not None:
            return chr(int(code, 16))
        if simple in _SIMPLE:
            return _SIMPLE[simple]
        if simple == "u":
            what, hint = "a character is written as its hexadecimal number in braces", r"such as \u{1F600}"
        else:
            what = r"the escapes are \n \t \" \\ and \u{...}"
            hint = rf'write \\{simple} for a backslash, or """...""", which has no escapes: """\d+""" is a pattern'
        report(_bad_escape(source, start + match.start(), match[0], what, hint))
        return match[0]

    return _ESCAPE.sub(replace, raw)


def _bad_escape(source: SourceText, at: int, written: str, rule: str, hint: str | None) -> Diagnostic:
    return Diagnostic("bad-escape", f"{written} is no escape: {rule}", source.span(at, at + len(written)), hint=hint)


def plain_text(source: SourceText, node: Text, report: Report) -> str:
    """The text of a literal that is no template, where `{{` means nothing."""
    literal = measure(node)
    return cook(source, literal, literal.start, literal.end, report)
