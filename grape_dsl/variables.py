"""Variables: the named values of a workflow."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from grape_dsl.diagnostics import Span
from grape_dsl.template import Template


class VariableKind(StrEnum):
    """Who gives a variable its value: the caller, or a task (or `value`) of the workflow."""

    INPUT = "InputVar"
    INTERMEDIATE = "IntermediateVar"
    OUTPUT = "OutputVar"


InputVar = VariableKind.INPUT
IntermediateVar = VariableKind.INTERMEDIATE
OutputVar = VariableKind.OUTPUT


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable.

    Args:
        default: text of an InputVar that the caller may leave out; never parsed as a template.
        value: a fragment, spliced into its readers; such a variable has no writing task.
    """

    name: str
    kind: VariableKind
    default: str | None = None
    value: Template | None = None
    span: Span | None = field(default=None, compare=False)
