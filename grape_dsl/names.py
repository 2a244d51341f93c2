"""Names: what a variable, task or workflow may be called."""

from __future__ import annotations

import re

from grape_dsl.diagnostics import Diagnostic, DiagnosticError, Span

_STATEMENTS = ("workflow", "import", "add_variable", "add_task", "add_type", "add_test")
_BLOCKS = ("when", "else", "foreach", "fold", "loop")
_EXPRESSIONS = ("and", "or", "not", "in", "if", "for", "end", "true", "false")

RESERVED = frozenset({*_STATEMENTS, *_BLOCKS, *_EXPRESSIONS})
"""Words of the language. Names of fields and options may be among them, others not."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_reserved(name: str) -> bool:
    return name in RESERVED


def check_name(name: str, what: str, span: Span | None = None) -> None:
    """Refuse `name` as the name of a `what` ("variable", "task", ...).

    Raises:
        DiagnosticError: `bad-name`: no text, no ASCII identifier, or a reserved word.
    """
    if not isinstance(name, str):
        rule, hint = f"is no text but {type(name).__name__}", "give the name as a string"
    elif is_reserved(name):
        rule, hint = "is a word of the language", f"another name, such as {name + '_'!r}, works"
    elif not _NAME.fullmatch(name):
        rule, hint = "is no name", "a name has ASCII letters, digits and '_', and does not begin with a digit"
    else:
        return
    raise DiagnosticError([Diagnostic("bad-name", f"{what} {name!r}: this {rule}", span, hint=hint)])
