"""After a syntax error: what was left unfinished, and where to read on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lark import Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

from grape_dsl.syntax.source import SourceText

OPENERS = {"LPAR": "(", "LSQB": "[", "LBRACE": "{"}

_PIECES = re.compile(
    r'"""[\s\S]*?"""|"(?!"")[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|#[^\n]*'
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<brace>[{}])|[^\sA-Za-z_]"
)
_STATEMENT = re.compile(
    r"(?:add_variable|add_task|add_type|add_test|when|foreach|fold|loop)[ \t]*\(|(?:workflow|import)[ \t]+[A-Za-z_]"
)
_LINE_WITH_STATEMENT = re.compile(rf"^[ \t]*(?={_STATEMENT.pattern})", re.MULTILINE)
_WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What the parser holds at an error.

    `start` is where the statement with the error begins; `open` are the brackets open in it and
    `blocks` the braces of blocks around it, outermost first; `last` is the last token read.
    """

    start: int
    open: tuple[Token, ...]
    blocks: tuple[Token, ...]
    last: Token | None


def unfinished(reading: InteractiveParser, at: int, last: Token | None) -> Unfinished:
    """Look at the parser's stacks after an error at `at`."""
    state = reading.parser_state
    base = _statement_level(reading)
    held = state.value_stack[base:]
    first = held[0] if held else None
    start = first.start_pos if isinstance(first, Token) else getattr(first, "start", at)
    return Unfinished(start if start is not None else at, _brackets(held), _brackets(state.value_stack[:base]), last)


def _statement_level(reading: InteractiveParser) -> int:
    """How much of the value stack lies below the statement that is being read."""
    stack, table = reading.parser_state.state_stack, reading.parser_state.parse_conf.states
    level = len(stack) - 1
    while "statement" not in table[stack[level]]:
        level -= 1
    return level


def _brackets(values: list[object]) -> tuple[Token, ...]:
    return tuple(value for value in values if isinstance(value, Token) and value.type in OPENERS)


def begins_statement(source: SourceText, at: int) -> bool:
    """Whether a statement seems to begin at `at`: a statement's word, and not inside a line of something else."""
    if not _STATEMENT.match(source.text, at):
        return False
    before = source.text[max(0, at - 200) : at].rstrip()
    return source.text.startswith("add_", at) or source.first_on_line(at) or before.endswith(("}", ")", "{"))


def statement_inside(source: SourceText, text: Token | None) -> int | None:
    """Where a statement begins inside a long text that seems to lack its closing quotes."""
    if text is None or text.type != "LONG_TEXT" or text.start_pos is None:
        return None
    found = _LINE_WITH_STATEMENT.search(source.text, text.start_pos + 3, text.end_pos or 0)
    return found.end() if found else None


@dataclass(slots=True)
class Recovery:
    """Finds the places to read on. Every place lies behind the one before, so reading ends."""

    source: SourceText
    lost: set[str] = field(default_factory=set)
    _passed_blocks: int = 0  # blocks whose opening brace was passed over: their closing one is, too
    _resumed: int = -1

    def only_closes_passed_block(self, at: int, held: Unfinished) -> bool:
        """Whether the error at `at` is the end of a block whose beginning could not be read."""
        return self._passed_blocks > 0 and not held.open and self.source.text.startswith("}", at)

    def resume(self, at: int, held: Unfinished) -> int:
        """Where to read on after an error at `at`: the next statement, or the end of a block around it."""
        text = self.source.text
        if self.only_closes_passed_block(at, held):
            self._passed_blocks -= 1
            at = self._behind_else(at + 1)
        else:
            at = self._next(at, held)
        self._resumed = at = max(at, min(self._resumed + 1, len(text)))
        self.lost.update(_WORDS.findall(text, held.start, at))
        return at

    def _next(self, at: int, held: Unfinished) -> int:
        inside = statement_inside(self.source, held.last)
        if inside is not None and inside > self._resumed:
            return inside
        # A brace behind `)` or `else` opens a block, any other a record.
        depth = sum(token.type == "LBRACE" for token in held.open)
        for position, brace in self._landmarks(at):
            if position > self._resumed and not brace:
                return position
            if brace == "{":
                if self._opens_block(position):
                    self._passed_blocks += 1
                else:
                    depth += 1
            elif brace == "}":
                if depth:
                    depth -= 1
                elif self._passed_blocks:
                    self._passed_blocks -= 1
                elif held.blocks and position > self._resumed:
                    return position
        return len(self.source.text)

    def _landmarks(self, at: int) -> Iterator[tuple[int, str]]:
        """Braces, and "" for beginnings of statements, from `at` on."""
        for piece in _PIECES.finditer(self.source.text, at):
            if piece["brace"]:
                yield piece.start(), piece["brace"]
            elif piece["word"] and begins_statement(self.source, piece.start()):
                yield piece.start(), ""

    def _opens_block(self, at: int) -> bool:
        return self.source.text[max(0, at - 200) : at].rstrip().endswith((")", "else"))

    def _behind_else(self, at: int) -> int:
        """Behind `else ... {` where that follows the end of a block that was passed over."""
        text = self.source.text
        following = re.compile(r"\s*else\b").match(text, at)
        if following is None:
            return at
        opening = text.find("{", following.end())
        if opening < 0:
            return len(text)
        self._passed_blocks += 1
        return opening + 1
