"""The parser that the grammar defines, ready to use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

from grape_dsl.names import RESERVED
from grape_dsl.syntax import tables
from grape_dsl.syntax.tree_builder import TreeBuilder


class ReservedWords:
    """Tells the contextual lexer that reserved words are never names, wherever they stand."""

    always_accept = tuple(sorted(word.upper() for word in RESERVED))

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return stream


def grammar_path() -> Path:
    """Where flow.lark is: inside the installed package, or beside it in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "grammar" / "flow.lark"
    return inside if inside.exists() else package.parent / "grammar" / "flow.lark"


def tokens(reading: InteractiveParser) -> Iterator[Token]:
    """The tokens from where `reading` is, each lexed in the state that the one before it led to."""
    lexed: Iterator[Token] = reading.lexer_thread.lex(reading.parser_state)  # type: ignore[no-untyped-call]
    return lexed


def accepted(reading: InteractiveParser) -> set[str]:
    """The terminals that may come next. (The set in lark's errors has some that may not.)"""
    terminals: set[str] = reading.accepts()  # type: ignore[no-untyped-call]
    return terminals


def may_end(reading: InteractiveParser) -> bool:
    """Whether the state after the last token is one in which the text may end."""
    return "$END" in reading.parser_state.parse_conf.states[reading.parser_state.position]


def move_to(reading: InteractiveParser, position: int) -> None:
    """Let `reading` go on at character `position`."""
    lexer = reading.lexer_thread.state
    assert lexer is not None  # it is None only for parsers without a text
    lexer.line_ctr.char_pos = position
    lexer.last_token = None


def finish(reading: InteractiveParser) -> Any:
    """End the input; returns the tree."""
    return reading.feed_eof()  # type: ignore[no-untyped-call]


@cache
def parser() -> Lark:
    """The parser, made once per process. Safe to use from several threads."""
    loaded = Lark.__new__(Lark)
    return loaded._load(tables.read(grammar_path()), transformer=TreeBuilder(), postlex=ReservedWords())
