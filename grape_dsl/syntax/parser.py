"""From text to a syntax tree, going on at the next statement after a syntax error."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from grape_dsl.diagnostics import Diagnostic
from grape_dsl.syntax import tree
from grape_dsl.syntax.grammar import accepted, finish, move_to, parser, tokens
from grape_dsl.syntax.recovery import Recovery, begins_statement, unfinished
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.syntax_error import describe

MOST_ERRORS = 50
"""Syntax errors that one file reports."""

_COMMENTS = re.compile(r'"""[\s\S]*?"""|"(?!"")[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|(#[^\n]*)')


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was read. With `diagnostics` the tree lacks the statements that could not be read.

    `lost` holds the words of the text passed over, so that a name declared there is not called unknown.
    """

    program: tree.Program
    diagnostics: tuple[Diagnostic, ...]
    lost: frozenset[str]


def parse(source: SourceText) -> Parsed:
    """Read a program. Never raises for what the text says; time grows linearly with it."""
    try:
        statements = parser().parse(source.text, start="program")
    except UnexpectedInput:
        return _parse_with_errors(source)
    return Parsed(_program(source, statements), (), frozenset())


def _program(source: SourceText, statements: object) -> tree.Program:
    assert isinstance(statements, tuple)
    comments = tuple(
        tree.Comment(found.start(), found.end(), found[1]) for found in _COMMENTS.finditer(source.text) if found[1]
    )
    return tree.Program(0, len(source.text), statements, comments)


def _parse_with_errors(source: SourceText) -> Parsed:
    reading = parser().parse_interactive(source.text, start="program")
    recovery = Recovery(source)
    diagnostics: list[Diagnostic] = []
    while True:
        last: Token | None = None
        try:
            for token in tokens(reading):
                reading.feed_token(token)
                last = token
            statements = finish(reading)
            break
        except UnexpectedInput as error:
            at, kind = _place(error, source, last)
            _complete(reading)
            held = unfinished(reading, at, last)
            if not recovery.only_closes_passed_block(at, held):
                diagnostics.append(describe(source, reading, held, at, kind))
            position = recovery.resume(at, held)
            _go_on(reading, position if len(diagnostics) < MOST_ERRORS else len(source.text), len(source.text))
    return Parsed(_program(source, statements), tuple(diagnostics), frozenset(recovery.lost))


def _place(error: UnexpectedInput, source: SourceText, last: Token | None) -> tuple[int, str | None]:
    """Where an error is, and the kind of the token there; None for a character that begins no token.

    A statement's word that was read as the name of an option is the error, not the bracket behind it.
    """
    if isinstance(error, UnexpectedCharacters):
        return error.pos_in_stream or 0, None
    assert isinstance(error, UnexpectedToken)
    if error.token.type == "$END" or error.token.start_pos is None:
        return len(source.text), "$END"
    if last is not None and last.start_pos is not None and begins_statement(source, last.start_pos):
        starts_anew = error.token.type in ("LPAR", "NAME") and last.type != "NAME"
        if starts_anew:
            return last.start_pos, str(last.type)
    return error.token.start_pos, error.token.type


def _complete(reading: InteractiveParser) -> None:
    """Keep a statement that could end before the error, such as a header without brackets."""
    if "ADD_TASK" in accepted(reading):
        reading.feed_token(Token("ADD_TASK", "add_task"))
        reading.parser_state.state_stack.pop()
        reading.parser_state.value_stack.pop()


def _go_on(reading: InteractiveParser, position: int, end: int) -> None:
    """Drop what was begun, back to where a statement may stand (at the end: outside of blocks), and read on."""
    state = reading.parser_state
    table = state.parse_conf.states
    while "statement" not in table[state.position] or (position >= end and "$END" not in table[state.position]):
        state.state_stack.pop()
        state.value_stack.pop()
    move_to(reading, position)
