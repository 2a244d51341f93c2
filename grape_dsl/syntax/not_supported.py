"""What the language has and the compiler does not take yet: refused by name, never ignored."""

from __future__ import annotations

from grape_dsl.diagnostics import Diagnostic
from grape_dsl.syntax import tree
from grape_dsl.syntax.source import SourceText

_VALUES = ("strip", "lower", "len", "json", "join", "find", "chunks", "range", "file", "env")
_MISSING = ("first", "missing", "each", "last")
_TASKS = ("python", "http", "ask", "flow", "tools", "retry", "timeout", "slo", "raw", "user", "assistant", "system")
_TESTS = ("calls", "prompt", "error")

FUNCTIONS = frozenset({*_VALUES, *_MISSING, *_TASKS, *_TESTS})
"""Functions that the language knows."""

_NODES: dict[type[tree.Node], str] = {
    tree.Number: "a number as text",
    tree.Boolean: "a truth value as text",
    tree.List: "a list",
    tree.Record: "a record",
    tree.Index: "an element `[...]`",
    tree.Keyed: "an argument with a name",
    tree.Call: "a call",
}
_TAGS: dict[type[tree.Node], str] = {
    tree.ForTag: "{{for ...}}",
    tree.IfTag: "{{if ...}}",
    tree.ElseTag: "{{else}}",
    tree.EndTag: "{{end}}",
}


def not_supported(source: SourceText, node: tree.Node, construct: str, hint: str | None = None) -> Diagnostic:
    """The diagnostic for `construct`, which stands at `node`."""
    return Diagnostic(
        "not-supported", f"{construct} is not supported yet", source.span(node.start, node.end), hint=hint
    )


def refuse(source: SourceText, node: tree.Expression | tree.Keyed) -> Diagnostic:
    """The diagnostic for an expression that is none of a text, a name, `strip(...)`."""
    return not_supported(source, node, construct_of(node), "a text, a name and strip(name) are")


def refuse_tag(source: SourceText, tag: tree.Tag) -> Diagnostic:
    return not_supported(source, tag, f"the tag {_TAGS[type(tag.body)]}", "{{name}} and {{strip(name)}} are")


def construct_of(node: tree.Expression | tree.Keyed) -> str:
    """What an expression is called in a message."""
    if isinstance(node, tree.Call) and isinstance(node.function, tree.Name):
        return f"{node.function.text}(...)"
    if isinstance(node, tree.Unary | tree.Binary):
        return f"the operator `{node.operator}`"
    if isinstance(node, tree.Field):
        return f"the field `.{node.name.text}`"
    return _NODES[type(node)]
