"""Template text cut into text and tags. A tag ends where its expression does, not at the first `}}`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Token, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser
from lark.utils import TextSlice

from grape_dsl.diagnostics import Diagnostic
from grape_dsl.syntax.expected import accepted_words
from grape_dsl.syntax.grammar import finish, may_end, move_to, parser, tokens
from grape_dsl.syntax.literals import Report
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.tree import Tag

_OPENING = re.compile(r"\{\{")
_OPENING_OR_ESCAPE = re.compile(r"\{\{|\\.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Characters `start` to `end` (left out) that are no tag."""

    start: int
    end: int


def cut(source: SourceText, start: int, end: int, has_escapes: bool, report: Report) -> list[Stretch | Tag]:
    """Text and tags between two offsets, in order.

    A tag that cannot be read is reported and left out; reading goes on behind it.
    """
    pieces: list[Stretch | Tag] = []
    pattern = _OPENING_OR_ESCAPE if has_escapes else _OPENING
    text_start = position = start
    while match := pattern.search(source.text, position, end):
        position = match.end()
        if match[0] != "{{":
            continue
        if match.start() > text_start:
            pieces.append(Stretch(text_start, match.start()))
        tag, position = _read_tag(source, match.start(), end, has_escapes, report)
        if tag is not None:
            pieces.append(tag)
        text_start = position
    if end > text_start:
        pieces.append(Stretch(text_start, end))
    return pieces


def _read_tag(source: SourceText, start: int, end: int, escapes: bool, report: Report) -> tuple[Tag | None, int]:
    """The tag at `start`, and where reading goes on."""
    # From 0 and then moved: lark counts the lines before a slice, once for each tag.
    reading = parser().parse_interactive(TextSlice(source.text, 0, end), start="tag")
    move_to(reading, start)
    last: Token | None = None
    try:
        for token in tokens(reading):
            reading.feed_token(token)
            if token.type == "RBRACE" and may_end(reading):
                return _closed(source, finish(reading), last, token, report), token.end_pos or end
            last = token
    except UnexpectedInput as error:
        at = _position(error)
        report(_unreadable(source, start, at, end, _expected(reading), escapes))
        closing = source.text.find("}}", max(at, start + 2), end)
        return None, closing + 2 if closing >= 0 else end
    where = source.span(start, start + 2)
    if last is not None and last.type == "TAG_OPEN":
        report(Diagnostic("open-tag", "`{{` opens a tag, and nothing follows it here", where, hint=_BRACES))
    else:
        what = f"this tag is not closed before its text ends: expected {_expected(reading)}"
        report(Diagnostic("open-tag", what, where, hint=_BRACES))
    return None, end


def _closed(source: SourceText, tag: Tag, last: Token | None, token: Token, report: Report) -> Tag | None:
    """The tag, if the two braces at its end stand together."""
    if last is not None and last.end_pos == token.start_pos:
        return tag
    start = (last.start_pos if last else None) or tag.end - 1
    report(
        Diagnostic(
            "bad-tag", "the braces that close a tag stand together", source.span(start, tag.end), hint="write }}"
        )
    )
    return None


def _expected(reading: InteractiveParser) -> str:
    in_record = any(isinstance(value, Token) and value.type == "LBRACE" for value in reading.parser_state.value_stack)
    words = accepted_words(reading)
    return words if in_record else words.replace("`}`", "`}}`")


_BRACES = 'close it with `}}`; two braces as text are written {{"{{"}}'


def _position(error: UnexpectedInput) -> int:
    found = error.token.start_pos if isinstance(error, UnexpectedToken) else error.pos_in_stream
    return found or 0


def _unreadable(source: SourceText, start: int, at: int, end: int, accepted: str, escapes: bool) -> Diagnostic:
    found = source.text[at : at + 1]
    where = source.span(at, min(at + 1, end))
    if escapes and found == "\\":
        hint = 'put the prompt in """...""", where quotes need no backslash'
        return Diagnostic("bad-tag", r"a backslash cannot stand in a tag", where, hint=hint)
    if source.text[start + 2 : at].strip() == "" and found in "}":
        return Diagnostic("bad-tag", "this tag is empty", source.span(start, at + 2), hint=_BRACES)
    braces = _BRACES if found == "{" else None
    return Diagnostic("bad-tag", f"expected {accepted} in this tag, found `{found}`", where, hint=braces)
