"""A task's prompt as one row of pieces: known text, inputs, turn borders, and holes for late outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grape_dsl.fragments import expand
from grape_dsl.graph.micro_task import InputPart, Piece, Source, TurnEnd, TurnStart
from grape_dsl.prompt import Prompt, RawPrompt, Role
from grape_dsl.template import Template
from grape_dsl.variables import VariableKind
from grape_dsl.workflow import Workflow


def prompts_of(workflow: Workflow) -> dict[str, tuple[Piece, ...]]:
    """The pieces of each task's prompt, by task name; fragments are spliced in.

    Raises:
        DiagnosticError: a fragment is used in a way that is not supported.
    """
    writers = {task.output: task.name for task in workflow.tasks.values()}
    return {task.name: tuple(_prompt(workflow, task.prompt, writers)) for task in workflow.tasks.values()}


def _prompt(workflow: Workflow, prompt: Prompt, writers: Mapping[str, str]) -> Iterator[Piece]:
    if isinstance(prompt, RawPrompt):
        yield from _text(workflow, prompt.text, writers)
        return
    last = len(prompt.turns) - 1
    for index, turn in enumerate(prompt.turns):
        yield TurnStart(turn.role.value)
        yield from _text(workflow, turn.content, writers)
        yield TurnEnd(open=index == last and turn.role is Role.ASSISTANT)


def _text(workflow: Workflow, template: Template, writers: Mapping[str, str]) -> Iterator[Piece]:
    for part in expand(workflow, template).parts:
        if isinstance(part, str):
            yield part
        elif workflow.variables[part.name].kind is VariableKind.INPUT:
            yield InputPart(part.name, part.strip)
        else:
            yield Source(writers[part.name], part.strip)
