"""What the parser accepts at a place, in words."""

from __future__ import annotations

from lark.parsers.lalr_interactive_parser import InteractiveParser

from grape_dsl.syntax.grammar import accepted

_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "SHORT_TEXT": "a text",
    "LONG_TEXT": "a text",
    "EQUAL": "`=`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "DOT": "`.`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "TAG_OPEN": "`{{`",
    "$END": "the end of the file",
}
_VALUE = {"NAME", "NUMBER", "SHORT_TEXT", "LONG_TEXT", "LSQB", "LBRACE", "LPAR", "TRUE", "FALSE", "NOT", "MINUS"}
_STATEMENT = {"ADD_VARIABLE", "ADD_TASK", "ADD_TYPE", "ADD_TEST", "WHEN", "FOREACH", "FOLD", "LOOP"}
_TOP = {"WORKFLOW", "IMPORT"}
_FIELD = {"AND", "OR", "IN", "END", "FOR", "IF", "ELSE"}
_OPERATOR = {"PLUS", "MINUS", "AND", "OR", "NOT", "IN", "DOT"}
_COMPARING = {"MORETHAN", "LESSTHAN"}


def accepted_words(reading: InteractiveParser) -> str:
    """What would be accepted now, such as "`,` or `)`"."""
    return in_words(accepted(reading))


def in_words(terminals: set[str]) -> str:
    rest = set(terminals)
    words: list[str] = []
    if rest >= _VALUE - {"LPAR", "MINUS", "NOT"}:
        words.append("a value")
        if rest >= _FIELD:
            words.append("an option")
            rest -= _STATEMENT | _TOP | _FIELD
        rest -= _VALUE
    elif rest >= _FIELD | _STATEMENT:
        words.append("a name")
        rest -= _FIELD | _STATEMENT | _TOP | {"NAME", "TRUE", "FALSE", "NOT"}
    if rest >= _STATEMENT:
        words.append("a statement")
        rest -= _STATEMENT | _TOP
    if rest >= {"PLUS", "MINUS"}:
        rest = {word for word in rest if word not in _OPERATOR and not _is_comparing(word)}
        rest -= {"LSQB", "LPAR"}
        words.append("an operator")
    words += sorted({_WORDS.get(word, f"`{word.lower()}`") for word in rest}, key=lambda w: (w.startswith("`"), w))
    return " or ".join(([", ".join(words[:-1])] if words[:-1] else []) + words[-1:]) or "nothing more"


def _is_comparing(word: str) -> bool:
    return word in _COMPARING or word.startswith("__ANON")
