"""The values of a workflow's OutputVars, once the tasks that they are made of have ended."""

from __future__ import annotations

from collections.abc import Mapping

from grape_dsl.fragments import expand
from grape_dsl.template import Reference, Template
from grape_dsl.variables import VariableKind
from grape_dsl.workflow import Workflow


def output_values(workflow: Workflow, inputs: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    """The OutputVars in the order of their declaration, those left out that need a task without output.

    Args:
        inputs: the value of every InputVar.
        texts: output texts by task name.
    """
    known = dict(inputs) | {task.output: texts[task.name] for task in workflow.tasks.values() if task.name in texts}
    found = {}
    for variable in workflow.variables.values():
        if variable.kind is not VariableKind.OUTPUT:
            continue
        template = variable.value if variable.value is not None else Template.of(Reference(variable.name))
        parts = expand(workflow, template).parts
        if all(isinstance(part, str) or part.name in known for part in parts):
            found[variable.name] = "".join(part if isinstance(part, str) else _value(part, known) for part in parts)
    return found


def _value(reference: Reference, known: Mapping[str, str]) -> str:
    text = known[reference.name]
    return text.strip() if reference.strip else text
