"""Parse tables: the grammar, made ready for the parser.

Making them takes most of a second, so the build does it once (`hatch_build.py`) and leaves
`flow.tables` beside `flow.lark`. Tables that do not fit the grammar or the lark version are made anew,
in memory. This module stands alone: the build loads it by path, before the package can be imported.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from pathlib import Path
from typing import Any

import lark
from lark import Lark

STARTS = ("program", "tag")


def stamp(grammar: str) -> str:
    """What tables must carry to fit `grammar` and the installed lark."""
    return f"lark {lark.__version__} grammar {hashlib.sha256(grammar.encode()).hexdigest()}"


def make(grammar: str) -> dict[str, Any]:
    """The tables of `grammar`; raises lark's GrammarError where it is no LALR(1) grammar."""
    parser = Lark(grammar, parser="lalr", lexer="contextual", start=list(STARTS), maybe_placeholders=False)
    buffer = io.BytesIO()
    parser.save(buffer)
    tables: dict[str, Any] = pickle.loads(buffer.getvalue())
    return tables


def write(grammar_path: Path) -> Path:
    """Write the tables of the grammar at `grammar_path` beside it; returns where."""
    grammar = grammar_path.read_text(encoding="utf-8")
    target = grammar_path.with_suffix(".tables")
    target.write_bytes(pickle.dumps((stamp(grammar), make(grammar)), protocol=5))
    return target


def read(grammar_path: Path) -> dict[str, Any]:
    """The tables of the grammar at `grammar_path`: those beside it if they fit, else made in memory."""
    grammar = grammar_path.read_text(encoding="utf-8")
    try:
        made_for, tables = pickle.loads(grammar_path.with_suffix(".tables").read_bytes())
    except (OSError, ValueError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError):
        return make(grammar)
    if made_for != stamp(grammar):
        return make(grammar)
    assert isinstance(tables, dict)
    return tables
