"""Messages for syntax errors."""

from __future__ import annotations

from lark import Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

from grape_dsl.diagnostics import Diagnostic, Related, Span, nearest
from grape_dsl.names import is_reserved
from grape_dsl.syntax.expected import accepted_words
from grape_dsl.syntax.recovery import OPENERS, Unfinished, begins_statement, statement_inside
from grape_dsl.syntax.source import SourceText

CLOSERS = {"(": ")", "[": "]", "{": "}"}
STATEMENT_WORDS = ("add_variable", "add_task", "add_type", "add_test", "when", "foreach", "fold", "loop")
_CHARACTERS = {
    "'": ("texts stand in double quotes", 'write "..."'),
    "\u201c": ("this is a typographic quote", 'write "..."'),
    "\u201d": ("this is a typographic quote", 'write "..."'),
    "\u00a0": ("this is a no-break space", "write a plain space"),
    ";": ("statements need nothing between them", "leave it out"),
    "*": ("the language has no multiplication", None),
    "/": ("the language has no division", None),
    "&": ("the word for it is `and`", None),
    "|": ("the word for it is `or`", None),
    "!": ("the word for it is `not`", None),
}


def describe(source: SourceText, reading: InteractiveParser, held: Unfinished, at: int, kind: str | None) -> Diagnostic:
    """The diagnostic for the error at `at`; `kind` is the token's there, None where no token begins."""
    if kind is None:
        return _bad_character(source, at)
    inside = statement_inside(source, held.last)
    if inside is not None and held.last is not None:
        return _open_text(source, held.last.start_pos or 0, 3, related=source.span(inside, inside))
    where = source.span(at, at + len(_token_text(source, at, kind)))
    left_open = _left_open(source, held, at, kind)
    if left_open is not None:
        return _open_bracket(source, left_open, where, kind)
    expected = accepted_words(reading)
    if expected == "`=`" and held.last is not None and held.last.type != "NAME":
        return _reserved(source, held.last)
    found = "the end of the file" if kind == "$END" else f"`{_shown(_token_text(source, at, kind))}`"
    return Diagnostic("syntax", f"expected {expected}, found {found}", where, hint=_hint(source, held, at, kind))


def _left_open(source: SourceText, held: Unfinished, at: int, kind: str) -> Token | None:
    """The bracket whose missing end explains the error."""
    brackets = held.open or (held.blocks if kind == "$END" else ())
    if not brackets:
        return None
    innermost = brackets[-1]
    if kind == "$END" or begins_statement(source, at):
        return innermost
    closed = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}.get(kind)
    if closed is not None and closed != innermost.type and any(token.type == closed for token in brackets):
        return innermost
    if kind == "LBRACE" and held.in_block_head and innermost.type == "LPAR":
        return innermost
    if kind == "EQUAL" and innermost.type == "LSQB" and len(brackets) > 1:
        return innermost
    return None


def _reserved(source: SourceText, word: Token) -> Diagnostic:
    where = source.span(word.start_pos or 0, word.end_pos or 0)
    return Diagnostic(
        "syntax", f"`{word}` is a word of the language and cannot be a name", where, hint=f"`{word}_` can"
    )


def _open_bracket(source: SourceText, bracket: Token, found: Span, kind: str) -> Diagnostic:
    start = bracket.start_pos or 0
    opener = OPENERS[bracket.type]
    where = "the file ends" if kind == "$END" else "this comes"
    if kind == "$END":
        end = len(source.text.rstrip())
        found = source.span(max(0, end - 1), end)
    return Diagnostic(
        "open-bracket",
        f"`{opener}` is not closed",
        source.span(start, start + 1),
        hint=f"add `{CLOSERS[opener]}`",
        related=(Related(f"{where} before its `{CLOSERS[opener]}`", found),),
    )


def _open_text(source: SourceText, start: int, quotes: int, related: Span | None = None) -> Diagnostic:
    mark = '"' * quotes
    hint = f"add `{mark}`" if quotes == 3 else 'a text in "..." ends on its line; """...""" may have several lines'
    places = () if related is None else (Related("it runs over what looks like a statement here", related),)
    return Diagnostic(
        "open-text", "this text is not closed", source.span(start, start + quotes), hint=hint, related=places
    )


def _bad_character(source: SourceText, at: int) -> Diagnostic:
    if source.text.startswith('"', at):
        return _open_text(source, at, 3 if source.text.startswith('"""', at) else 1)
    character = source.text[at]
    rule, hint = _CHARACTERS.get(character, ("no token begins with it", None))
    if character.isalpha():
        rule, hint = "names have ASCII letters, digits and '_'", None
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return Diagnostic("bad-character", f"`{shown}` cannot stand here: {rule}", source.span(at, at + 1), hint=hint)


def _token_text(source: SourceText, at: int, kind: str) -> str:
    """The token at `at`, up to the end of its line."""
    if kind == "$END":
        return ""
    text = source.text
    end = at + 1
    if text[at].isalnum() or text[at] == "_":
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
    elif text[at] == '"':
        line_end = text.find("\n", at)
        closing = text.find('"', at + 1)
        end = min(closing + 1 if closing >= 0 else len(text), line_end if line_end >= 0 else len(text))
    elif text[at : at + 2] in ("==", "!=", "<=", ">="):
        end = at + 2
    return text[at:end]


def _shown(text: str) -> str:
    return text if len(text) <= 30 else text[:27] + "..."


def _hint(source: SourceText, held: Unfinished, at: int, kind: str) -> str | None:
    text = _token_text(source, at, kind)
    if (not held.open and held.last is None) or held.start == at:
        if kind == "NAME":
            close = nearest(text, STATEMENT_WORDS, limit=1)
            return f"did you mean `{close[0]}`?" if close else "a statement begins with " + ", ".join(STATEMENT_WORDS)
        if text in (")", "]", "}"):
            return "no bracket is open here"
    if text in ("==", "!=", "<", "<=", ">", ">=", "in"):
        return "comparisons do not chain: join two of them with `and`"
    if text == "{" and held.last is not None and held.last.type == "LBRACE":
        return "`{{` has a meaning only inside a text"
    if kind in ("WORKFLOW", "IMPORT"):
        return f"`{text}` stands outside of blocks"
    if is_reserved(text):
        return f"`{text}` is a word of the language and cannot be a name"
    return None
