"""Fragments: variables with a `value`, spliced into their readers."""

from __future__ import annotations

from grape_dsl.diagnostics import Diagnostic, DiagnosticError
from grape_dsl.template import Reference, Template
from grape_dsl.workflow import Workflow

LARGEST = 5_000_000
"""Characters and references that one text may grow to by splicing."""


def expand(workflow: Workflow, template: Template) -> Template:
    """`template` with every fragment spliced in: only InputVars and task outputs stay referenced.

    The program must be free of cycles (`grape_dsl.checks.check` says so).

    Raises:
        DiagnosticError: `not-supported`: `strip` of a fragment that mixes text and references;
            `too-large`: fragments in fragments grow beyond `LARGEST`.
    """
    done: dict[str, Template] = {}
    waiting = [reference.name for reference in template.references]
    while waiting:
        name = waiting[-1]
        value = _value(workflow, name)
        if name in done or value is None:
            waiting.pop()
            continue
        missing = [r.name for r in value.references if r.name not in done and _value(workflow, r.name) is not None]
        if missing:
            waiting += missing
        else:
            waiting.pop()
            done[name] = _spliced(value, done)
    return _spliced(template, done)


def _value(workflow: Workflow, name: str) -> Template | None:
    variable = workflow.variables.get(name)
    return None if variable is None else variable.value


def _spliced(template: Template, done: dict[str, Template]) -> Template:
    if not any(reference.name in done for reference in template.references):
        return template
    parts: list[str | Reference] = []
    size = 0
    for part in template.parts:
        new = _inserted(part, done[part.name]) if isinstance(part, Reference) and part.name in done else (part,)
        size += sum(len(p) if isinstance(p, str) else 1 for p in new)
        if size > LARGEST:
            what = f"fragments spliced into fragments make a text of more than {LARGEST:,} characters"
            raise DiagnosticError([Diagnostic("too-large", what, template.span)])
        parts += new
    return Template.of(*parts, span=template.span)


def _inserted(reference: Reference, fragment: Template) -> tuple[str | Reference, ...]:
    """What stands for `reference` once `fragment` is its value."""
    if not reference.strip or not fragment.parts:
        return fragment.parts
    first = fragment.parts[0]
    if len(fragment.parts) > 1:
        what = (
            f"strip({reference.name}) is not supported yet: the value of {reference.name!r} mixes text and references"
        )
        hint = f"write {{{{{reference.name}}}}}, and strip inside its value"
        raise DiagnosticError([Diagnostic("not-supported", what, reference.span, hint=hint)])
    if isinstance(first, str):
        return (first.strip(),)
    return (Reference(first.name, True, first.span),)
