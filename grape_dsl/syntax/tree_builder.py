"""From the parser's reductions to tree nodes: one method per rule of the grammar, called as it parses.

Positions come from the tokens and nodes at each rule's ends, which costs less than lark's
`propagate_positions`.
"""

from __future__ import annotations

import re
from typing import Any

from lark import Token

from grape_dsl.syntax import tree

_DIGITS = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def _start(child: Any) -> Any:
    return child.start_pos if isinstance(child, Token) else child.start


def _end(child: Any) -> Any:
    return child.end_pos if isinstance(child, Token) else child.end


def _name(token: Token) -> tree.Name:
    return tree.Name(_start(token), _end(token), str(token))


class TreeBuilder:
    """Callbacks for `lark.Lark(transformer=...)`; `c` is what the rule's symbols gave, in order."""

    def program(self, c: list[Any]) -> tuple[Any, ...]:
        return tuple(c)

    def header(self, c: list[Any]) -> tree.Header:
        return tree.Header(_start(c[0]), _end(c[-1]), _name(c[1]), c[2] if len(c) > 2 else None)

    def import_(self, c: list[Any]) -> tree.Import:
        return tree.Import(_start(c[0]), _end(c[-1]), tuple(map(_name, c[1:-2])), c[-1])

    def declaration(self, c: list[Any]) -> tree.Declaration:
        return tree.Declaration(_start(c[0]), _end(c[1]), str(c[0]), c[1])

    def when(self, c: list[Any]) -> tree.When:
        branches = tuple(child for child in c if isinstance(child, tree.Branch))
        otherwise = c[-1] if isinstance(c[-1], tree.Block) else None
        return tree.When(_start(c[0]), _end(c[-1]), branches, otherwise)

    def when_branch(self, c: list[Any]) -> tree.Branch:
        return tree.Branch(_start(c[0]), _end(c[-1]), c[2], c[4])

    def otherwise(self, c: list[Any]) -> tree.Block:
        return c[1]  # type: ignore[no-any-return]

    def repeat_over(self, c: list[Any]) -> tree.RepeatOver:
        item, over, options = c[1]
        return tree.RepeatOver(_start(c[0]), _end(c[2]), str(c[0]), item, over, options, c[2])

    def mapped(self, c: list[Any]) -> tuple[Any, ...]:
        return _name(c[1]), c[3], tuple(c[4:-1])

    def loop(self, c: list[Any]) -> tree.Loop:
        return tree.Loop(_start(c[0]), _end(c[2]), c[1], c[2])

    def block(self, c: list[Any]) -> tree.Block:
        return tree.Block(_start(c[0]), _end(c[-1]), tuple(c[1:-1]))

    def arguments(self, c: list[Any]) -> tree.Arguments:
        return tree.Arguments(_start(c[0]), _end(c[-1]), tuple(c[1:-1]))

    def keyed(self, c: list[Any]) -> tree.Keyed:
        return tree.Keyed(_start(c[0]), _end(c[1]), c[0], c[1])

    def binary(self, c: list[Any]) -> tree.Binary:
        return tree.Binary(_start(c[0]), _end(c[2]), c[0], str(c[1]), c[2])

    def comparing(self, c: list[Any]) -> str:
        return " ".join(c)

    def unary(self, c: list[Any]) -> tree.Unary:
        return tree.Unary(_start(c[0]), _end(c[1]), str(c[0]), c[1])

    def field(self, c: list[Any]) -> tree.Field:
        return tree.Field(_start(c[0]), _end(c[1]), c[0], c[1])

    def index(self, c: list[Any]) -> tree.Index:
        return tree.Index(_start(c[0]), _end(c[2]), c[0], c[1])

    def call(self, c: list[Any]) -> tree.Call:
        return tree.Call(_start(c[0]), _end(c[1]), c[0], c[1])

    def name(self, c: list[Any]) -> tree.Name:
        return _name(c[0])

    def word(self, c: list[Any]) -> tree.Name:
        return _name(c[0])

    def number(self, c: list[Any]) -> tree.Number:
        written = str(c[0])
        digits = _DIGITS.match(written)
        assert digits is not None  # the grammar's NUMBER begins with it
        whole = digits[1] is None and digits[2] is None and len(digits[0]) < 400
        value = int(digits[0]) if whole else float(digits[0])
        return tree.Number(_start(c[0]), _end(c[0]), value, written[digits.end() :])

    def boolean(self, c: list[Any]) -> tree.Boolean:
        return tree.Boolean(_start(c[0]), _end(c[0]), c[0] == "true")

    def text(self, c: list[Any]) -> tree.Text:
        is_long = c[0].type == "LONG_TEXT"
        raw = str(c[0])[3:-3] if is_long else str(c[0])[1:-1]
        return tree.Text(_start(c[0]), _end(c[0]), raw, is_long)

    def list_(self, c: list[Any]) -> tree.List:
        return tree.List(_start(c[0]), _end(c[-1]), tuple(c[1:-1]))

    def entry(self, c: list[Any]) -> tree.Entry:
        return tree.Entry(_start(c[0]), _end(c[1]), c[0], c[1])

    def record(self, c: list[Any]) -> tree.Record:
        return tree.Record(_start(c[0]), _end(c[-1]), tuple(c[1:-1]))

    def group(self, c: list[Any]) -> tree.Group:
        return tree.Group(_start(c[0]), _end(c[-1]), c[1])

    def tag(self, c: list[Any]) -> tree.Tag:
        return tree.Tag(_start(c[0]), _end(c[-1]), c[1])

    def tag_for(self, c: list[Any]) -> tree.ForTag:
        return tree.ForTag(_start(c[0]), _end(c[-1]), tuple(map(_name, c[1:-2])), c[-1])

    def tag_if(self, c: list[Any]) -> tree.IfTag:
        return tree.IfTag(_start(c[0]), _end(c[1]), c[1])

    def tag_else(self, c: list[Any]) -> tree.ElseTag:
        return tree.ElseTag(_start(c[0]), _end(c[0]))

    def tag_end(self, c: list[Any]) -> tree.EndTag:
        return tree.EndTag(_start(c[0]), _end(c[0]))
