"""The syntax tree of a program, as written.

Every node says where it stands: `start` and `end` (left out) are character offsets into the source,
and `SourceText.span` makes a `Span` of them. Nodes compare by identity: a tree can be deeper than
Python's recursion limit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    start: int
    end: int


# ---- expressions ----


@dataclass(frozen=True, slots=True, eq=False)
class Name(Node):
    """A name, also one of a field, an option or a record's key."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Text(Node):
    """A text literal. `is_long`: in triple quotes. `raw` is what stands between the quotes."""

    raw: str
    is_long: bool

    @property
    def body(self) -> tuple[int, int]:
        """Offsets of `raw` in the source."""
        quotes = 3 if self.is_long else 1
        return self.start + quotes, self.end - quotes


@dataclass(frozen=True, slots=True, eq=False)
class Number(Node):
    """A number without sign. `unit` is what follows its digits, such as `ms`; "" without one."""

    value: int | float
    unit: str


@dataclass(frozen=True, slots=True, eq=False)
class Boolean(Node):
    value: bool


@dataclass(frozen=True, slots=True, eq=False)
class List(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Entry(Node):
    """`key: value` of a record."""

    key: Name | Text
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Record(Node):
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Group(Node):
    """An expression in round brackets."""

    inner: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Node):
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Node):
    left: Expression
    operator: str
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Field(Node):
    of: Expression
    name: Name


@dataclass(frozen=True, slots=True, eq=False)
class Index(Node):
    of: Expression
    index: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Keyed(Node):
    """An argument `key = value`."""

    key: Name
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Arguments(Node):
    """What stands in the round brackets of a statement or call, brackets included."""

    items: tuple[Expression | Keyed, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    function: Expression
    arguments: Arguments


Expression = Name | Text | Number | Boolean | List | Record | Group | Unary | Binary | Field | Index | Call


# ---- statements ----


@dataclass(frozen=True, slots=True, eq=False)
class Header(Node):
    """`workflow NAME(...)`; `arguments` is None without brackets."""

    name: Name
    arguments: Arguments | None


@dataclass(frozen=True, slots=True, eq=False)
class Import(Node):
    names: tuple[Name, ...]
    path: Text


@dataclass(frozen=True, slots=True, eq=False)
class Declaration(Node):
    """`add_variable(...)`, `add_task(...)`, `add_type(...)` or `add_test(...)`; `word` says which."""

    word: str
    arguments: Arguments


@dataclass(frozen=True, slots=True, eq=False)
class Block(Node):
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Branch(Node):
    condition: Expression
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class When(Node):
    branches: tuple[Branch, ...]
    otherwise: Block | None


@dataclass(frozen=True, slots=True, eq=False)
class RepeatOver(Node):
    """`foreach(item in over, ...) {...}` or `fold(...) {...}`; `word` says which."""

    word: str
    item: Name
    over: Expression
    options: tuple[Expression | Keyed, ...]
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Node):
    arguments: Arguments
    body: Block


Statement = Declaration | When | RepeatOver | Loop


@dataclass(frozen=True, slots=True, eq=False)
class Comment(Node):
    """A comment, its `#` included."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Program(Node):
    """A file: its statements and its comments, each in source order."""

    statements: tuple[Header | Import | Statement, ...]
    comments: tuple[Comment, ...]


# ---- tags of a template ----


@dataclass(frozen=True, slots=True, eq=False)
class ForTag(Node):
    names: tuple[Name, ...]
    over: Expression


@dataclass(frozen=True, slots=True, eq=False)
class IfTag(Node):
    condition: Expression


@dataclass(frozen=True, slots=True, eq=False)
class ElseTag(Node):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class EndTag(Node):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Tag(Node):
    """`{{body}}`, braces included."""

    body: Expression | ForTag | IfTag | ElseTag | EndTag
