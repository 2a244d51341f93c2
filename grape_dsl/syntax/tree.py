"""The syntax tree of a program, as written.

Every node says where it stands: `start` and `end` (left out) are character offsets into the source,
and `SourceText.span` makes a `Span` of them. Nodes compare by identity: a tree can be deeper than
Python's recursion limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

C = TypeVar("C")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[C]) -> type[C]:
    """A dataclass that type checkers hold to be frozen. At run time it is not, which makes a tree in half the time."""
    return dataclass(slots=True, eq=False)(cls)


@node
class Node:
    start: int
    end: int


# ---- expressions ----


@node
class Name(Node):
    """A name, also one of a field, an option or a record's key."""

    text: str


@node
class Text(Node):
    """A text literal. `is_long`: in triple quotes. `raw` is what stands between the quotes."""

    raw: str
    is_long: bool

    @property
    def body(self) -> tuple[int, int]:
        """Offsets of `raw` in the source."""
        quotes = 3 if self.is_long else 1
        return self.start + quotes, self.end - quotes


@node
class Number(Node):
    """A number without sign. `unit` is what follows its digits, such as `ms`; "" without one."""

    value: int | float
    unit: str


@node
class Boolean(Node):
    value: bool


@node
class List(Node):
    items: tuple[Expression, ...]


@node
class Entry(Node):
    """`key: value` of a record."""

    key: Name | Text
    value: Expression


@node
class Record(Node):
    entries: tuple[Entry, ...]


@node
class Group(Node):
    """An expression in round brackets."""

    inner: Expression


@node
class Unary(Node):
    operator: str
    operand: Expression


@node
class Binary(Node):
    left: Expression
    operator: str
    right: Expression


@node
class Field(Node):
    of: Expression
    name: Name


@node
class Index(Node):
    of: Expression
    index: Expression


@node
class Keyed(Node):
    """An argument `key = value`."""

    key: Name
    value: Expression


@node
class Arguments(Node):
    """What stands in the round brackets of a statement or call, brackets included."""

    items: tuple[Expression | Keyed, ...]


@node
class Call(Node):
    function: Expression
    arguments: Arguments


Expression = Name | Text | Number | Boolean | List | Record | Group | Unary | Binary | Field | Index | Call


# ---- statements ----


@node
class Header(Node):
    """`workflow NAME(...)`; `arguments` is None without brackets."""

    name: Name
    arguments: Arguments | None


@node
class Import(Node):
    names: tuple[Name, ...]
    path: Text


@node
class Declaration(Node):
    """`add_variable(...)`, `add_task(...)`, `add_type(...)` or `add_test(...)`; `word` says which."""

    word: str
    arguments: Arguments


@node
class Block(Node):
    statements: tuple[Statement, ...]


@node
class Branch(Node):
    condition: Expression
    body: Block


@node
class When(Node):
    branches: tuple[Branch, ...]
    otherwise: Block | None


@node
class RepeatOver(Node):
    """`foreach(item in over, ...) {...}` or `fold(...) {...}`; `word` says which."""

    word: str
    item: Name
    over: Expression
    options: tuple[Expression | Keyed, ...]
    body: Block


@node
class Loop(Node):
    arguments: Arguments
    body: Block


Statement = Declaration | When | RepeatOver | Loop


@node
class Comment(Node):
    """A comment, its `#` included."""

    text: str


@node
class Program(Node):
    """A file: its statements and its comments, each in source order."""

    statements: tuple[Header | Import | Statement, ...]
    comments: tuple[Comment, ...]


# ---- tags of a template ----


@node
class ForTag(Node):
    names: tuple[Name, ...]
    over: Expression


@node
class IfTag(Node):
    condition: Expression


@node
class ElseTag(Node):
    pass


@node
class EndTag(Node):
    pass


@node
class Tag(Node):
    """`{{body}}`, braces included."""

    body: Expression | ForTag | IfTag | ElseTag | EndTag
