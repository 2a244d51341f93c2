"""From template text to a `Template`: references, `strip`, plain strings in tags. The rest is refused."""

from __future__ import annotations

from dataclasses import replace

from grape_dsl.diagnostics import Diagnostic, Span, naming_hint
from grape_dsl.syntax import tree
from grape_dsl.syntax.literals import Report, cook, measure, plain_text
from grape_dsl.syntax.not_supported import FUNCTIONS, refuse, refuse_tag
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.template_tags import Stretch, cut
from grape_dsl.template import Reference, Template


def read_literal(source: SourceText, node: tree.Text, report: Report) -> Template:
    """The template that a text literal holds."""
    literal = measure(node)
    parts: list[str | Reference] = []
    pieces = cut(source, literal.start, literal.end, literal.has_escapes, report)
    for piece in pieces:
        if isinstance(piece, Stretch):
            parts.append(cook(source, literal, piece.start, piece.end, report))
        else:
            parts += _tag_parts(source, piece, report)
    return _template(parts, pieces, source.span(node.start, node.end))


def read_string(source: SourceText, report: Report) -> Template:
    """The template that a Python string holds: no escapes, no indent to take off."""
    parts: list[str | Reference] = []
    pieces = cut(source, 0, len(source.text), False, report)
    for piece in pieces:
        if isinstance(piece, Stretch):
            parts.append(source.text[piece.start : piece.end])
        else:
            parts += _tag_parts(source, piece, report)
    return _template([replace(p, span=None) if isinstance(p, Reference) else p for p in parts], pieces, None)


def _template(parts: list[str | Reference], pieces: list[Stretch | tree.Tag], span: Span | None) -> Template:
    """The template of `parts`, less the loop names of `{{for}}` tags, which are refused already."""
    fors = [p.body for p in pieces if isinstance(p, tree.Tag) and isinstance(p.body, tree.ForTag)]
    own = {name.text for tag in fors for name in tag.names}
    return Template.of(*(p for p in parts if not (isinstance(p, Reference) and p.name in own)), span=span)


def read_value(source: SourceText, node: tree.Expression | tree.Keyed, report: Report) -> Template | None:
    """The template that a text, a name or `strip(...)` stands for; None, and a report, for anything else."""
    if isinstance(node, tree.Text):
        return read_literal(source, node, report)
    part = _inserted(source, node, report)
    return None if part is None else Template.of(part, span=source.span(node.start, node.end))


def _tag_parts(source: SourceText, tag: tree.Tag, report: Report) -> list[str | Reference]:
    body = tag.body
    if isinstance(body, tree.ForTag | tree.IfTag | tree.ElseTag | tree.EndTag):
        report(refuse_tag(source, tag))
        return []
    part = _inserted(source, body, report)
    return [] if part is None else [part]


def _inserted(source: SourceText, node: tree.Expression | tree.Keyed, report: Report) -> str | Reference | None:
    """What a name, a plain string or `strip` of these inserts."""
    strip = False
    while True:
        if isinstance(node, tree.Group):
            node = node.inner
        elif isinstance(node, tree.Call) and isinstance(node.function, tree.Name) and node.function.text == "strip":
            given = node.arguments.items
            if len(given) != 1 or isinstance(given[0], tree.Keyed):
                where = source.span(node.arguments.start, node.arguments.end)
                report(Diagnostic("bad-call", f"strip takes one text, found {len(given)} arguments", where))
                return None
            node, strip = given[0], True
        else:
            break
    if isinstance(node, tree.Text):
        text = plain_text(source, node, report)
        return text.strip() if strip else text
    if isinstance(node, tree.Name):
        return Reference(node.text, strip, source.span(node.start, node.end))
    if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) and node.function.text not in FUNCTIONS:
        name = node.function
        hint = naming_hint(name.text, FUNCTIONS, "functions")
        report(
            Diagnostic(
                "unknown-function", f"there is no function {name.text!r}", source.span(name.start, name.end), hint
            )
        )
        return None
    report(refuse(source, node))
    return None
