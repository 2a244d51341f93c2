"""After a syntax error: what was left unfinished, and where to read on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lark import Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

from grape_dsl.syntax.source import SourceText

_BLOCK_WORDS = ("WHEN", "FOREACH", "FOLD", "LOOP", "ELSE")
OPENERS = {"LPAR": "(", "LSQB": "[", "LBRACE": "{"}

_PIECES = re.compile(
    r'"""[\s\S]*?"""|"(?!"")[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|#[^\n]*'
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<bracket>[(){}\[\]])|[^\sA-Za-z_]"
)
_STATEMENT = re.compile(
    r"(?:add_variable|add_task|add_type|add_test|when|foreach|fold|loop)[ \t]*\(|(?:workflow|import)[ \t]+[A-Za-z_]"
)
_LINE_WITH_STATEMENT = re.compile(rf"^[ \t]*(?={_STATEMENT.pattern})", re.MULTILINE)
_WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What the parser holds at an error.

    `start` is where the statement with the error begins, and `in_block_head` whether it is the head of a
    block; `open` are the brackets open in it and `blocks` the braces of blocks around it, outermost
    first; `last` is the last token read.
    """

    start: int
    in_block_head: bool
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
    in_block_head = any(isinstance(value, Token) and value.type in _BLOCK_WORDS for value in held)
    open_, blocks = _brackets(held), _brackets(state.value_stack[:base])
    return Unfinished(at if start is None else start, in_block_head, open_, blocks, last)


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
        braces = sum(token.type == "LBRACE" for token in held.open)
        others = len(held.open) - braces
        for piece in _PIECES.finditer(self.source.text, at):
            position, bracket = piece.start(), piece["bracket"]
            if piece["word"] and position > self._resumed:
                if begins_statement(self.source, position):
                    return position
                if position > at and not braces and not others and self._begins_unknown(position, piece.end()):
                    return position
            elif bracket == "{":
                if self._opens_block(position) or (position == at and held.in_block_head):
                    self._passed_blocks += 1
                    others = 0
                else:
                    braces += 1
            elif bracket == "}":
                if braces:
                    braces -= 1
                elif self._passed_blocks:
                    self._passed_blocks -= 1
                elif held.blocks and position > self._resumed:
                    return position
            elif bracket:
                others = max(0, others + (1 if bracket in "([" else -1))
        return len(self.source.text)

    def _begins_unknown(self, start: int, end: int) -> bool:
        """Whether a word outside of all brackets looks like a statement that the language does not have."""
        return self.source.text.startswith("(", end) and self.source.first_on_line(start)

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
