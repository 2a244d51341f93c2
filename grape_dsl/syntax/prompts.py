"""The value of `prompt`: a text, a list of turns, or `raw(...)`."""

from __future__ import annotations

from dataclasses import replace

from grape_dsl.diagnostics import Diagnostic, DiagnosticError
from grape_dsl.prompt import Prompt, RawPrompt, Role, Turn
from grape_dsl.prompt_reading import PromptLike, read_prompt
from grape_dsl.syntax import tree
from grape_dsl.syntax.literals import Report
from grape_dsl.syntax.not_supported import construct_of, not_supported
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.templates import read_value
from grape_dsl.template import Template

_ROLES = {role.value: role for role in Role}


def read_prompt_value(
    source: SourceText, node: tree.Expression, system: tree.Expression | None, report: Report
) -> Prompt | None:
    """The prompt that `prompt = node, system = system` stands for; None, and reports, where it cannot be read."""
    prompt = _read(source, node, report)
    system_text = None if system is None else read_value(source, system, report)
    if prompt is None or (system is not None and system_text is None):
        return None
    try:
        return read_prompt(prompt, system_text)
    except DiagnosticError as error:
        where = source.span(node.start, node.end)
        for diagnostic in error.diagnostics:
            report(replace(diagnostic, span=where))
        return None


def _read(source: SourceText, node: tree.Expression, report: Report) -> PromptLike | None:
    if isinstance(node, tree.List):
        turns = [_turn(source, item, report) for item in node.items]
        known = [turn for turn in turns if turn is not None]
        return known if len(known) == len(turns) else None
    if _calls(node, ["raw"]):
        text = _only_text(source, node, report)
        return None if text is None else RawPrompt(text)
    return read_value(source, node, report)


def _turn(source: SourceText, node: tree.Expression, report: Report) -> Turn | None:
    if _calls(node, _ROLES):
        text = _only_text(source, node, report)
        return None if text is None else Turn(_ROLES[_function(node)], text)
    if isinstance(node, tree.Name):
        report(not_supported(source, node, f"a history (`{node.text}`) in a list of turns"))
    elif isinstance(node, tree.Text):
        hint = "write user(...) or assistant(...) around it"
        report(Diagnostic("bad-turn", "a text in a list of turns has no role", source.span(node.start, node.end), hint))
    else:
        report(
            not_supported(source, node, f"{construct_of(node)} in a list of turns", "user(...) and assistant(...) are")
        )
    return None


def _only_text(source: SourceText, node: tree.Expression, report: Report) -> Template | None:
    assert isinstance(node, tree.Call)
    given = node.arguments.items
    if len(given) != 1 or isinstance(given[0], tree.Keyed):
        where = source.span(node.arguments.start, node.arguments.end)
        report(Diagnostic("bad-call", f"{_function(node)} takes one text", where))
        return None
    return read_value(source, given[0], report)


def _function(node: tree.Expression) -> str:
    return node.function.text if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) else ""


def _calls(node: tree.Expression, names: object) -> bool:
    return _function(node) in names  # type: ignore[operator]
