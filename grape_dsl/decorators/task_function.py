"""TaskFunction: a model call written as a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Unpack

from grape_dsl.decorators.options import TaskOptions, check_options
from grape_dsl.decorators.signature import refuse, traceable_signature
from grape_dsl.decorators.symbol import Symbol
from grape_dsl.diagnostics import naming_hint
from grape_dsl.prompt import Prompt, RawPrompt, Turn
from grape_dsl.prompt_reading import TextLike, read_prompt
from grape_dsl.syntax.literals import plain_text
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.tree import Text
from grape_dsl.template import Reference, Template
from grape_dsl.variables import IntermediateVar
from grape_dsl.workflow import Workflow

tracing: ContextVar[Workflow | None] = ContextVar("grape_dsl.tracing", default=None)
"""The workflow whose function is being traced."""


def task(
    *, task_output: str, system: TextLike | None = None, **options: Unpack[TaskOptions]
) -> Callable[[Callable[..., Any]], TaskFunction]:
    """Make a function a task that writes variable `task_output`.

        @task(task_output="query", max_tokens=32)
        def rewrite(question):
            \"\"\"
            Rewrite as one search query: {{question}}
            Query:\"\"\"

    Args:
        system: template text of a system turn in front.
        options: as for `Workflow.add_task`.

    Raises:
        DiagnosticError: an unknown option, or a signature that cannot be traced.
    """
    check_options(options)

    def decorate(function: Callable[..., Any]) -> TaskFunction:
        return TaskFunction(function, task_output, system, options)

    return decorate


class TaskFunction:
    """A model call as a function: calling it inside a workflow function adds the task.

    The prompt is what the function returns (text, a list of turns, `raw(...)`), else its docstring.
    `{{name}}` in it means the parameter `name`.
    """

    def __init__(
        self, function: Callable[..., Any], task_output: str, system: TextLike | None, options: TaskOptions
    ) -> None:
        self.name = function.__name__
        self.task_output = task_output
        self._function = function
        self._system = system
        self._options = options
        self._signature = traceable_signature(function, "task")
        for reserved in ("name", "task_output"):
            if reserved in self._signature.parameters:
                refuse("bad-name", f"task {self.name!r} has a parameter {reserved!r}, which a call uses for itself")
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, name: str | None = None, task_output: str | None = None, **kwargs: Any) -> Symbol:
        """Add the task to the workflow that is being traced.

        Args:
            name: the task's name; needed where the function is called a second time. Such a call
                writes `NAME_OUTPUT`, unless `task_output` says otherwise.

        Returns:
            The symbol of the variable that the task writes.
        """
        workflow = tracing.get()
        if workflow is None:
            refuse("no-workflow", f"task {self.name!r} is called outside a function with @workflow")
        if name is None and self.name in workflow.tasks:
            refuse(
                "duplicate-name",
                f"task {self.name!r} is called a second time in workflow {workflow.name!r}",
                f"give this call a name: {self.name}(..., name={self.name + '_2'!r})",
            )
        output = task_output or (self.task_output if name is None else f"{name}_{self.task_output}")
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            refuse("bad-call", f"task {self.name!r} cannot be called like this: {error}")
        bound.apply_defaults()
        prompt = self._prompt(workflow, bound)
        workflow.add_variable(output, IntermediateVar)
        content = prompt if isinstance(prompt, RawPrompt) else prompt.turns
        workflow.add_task(name or self.name, content, task_output=output, **self._options)
        return Symbol(workflow, Reference(output))

    def _prompt(self, workflow: Workflow, bound: inspect.BoundArguments) -> Prompt:
        returned = self._function(*bound.args, **bound.kwargs)
        if returned is None and self._function.__doc__ is None:
            refuse("no-prompt", f"task {self.name!r} has no docstring and returns nothing, so it has no prompt")
        written = returned if returned is not None else docstring_text(self._function.__doc__ or "")
        prompt = read_prompt(written, self._system)
        used: set[str] = set()

        def fill(template: Template) -> Template:
            parts = (p if isinstance(p, str) else self._value(workflow, p, bound.arguments) for p in template.parts)
            used.update(reference.name for reference in template.references)
            return Template.of(*parts)

        if isinstance(prompt, RawPrompt):
            filled: Prompt = RawPrompt(fill(prompt.text))
        else:
            filled = replace(prompt, turns=tuple(Turn(turn.role, fill(turn.content)) for turn in prompt.turns))
        for parameter, value in bound.arguments.items():
            if parameter not in used and (returned is None or isinstance(value, Symbol)):
                refuse(
                    "unused-parameter",
                    f"the prompt of task {self.name!r} does not use its parameter {parameter!r}",
                    f"write {{{{{parameter}}}}} in the prompt, or remove the parameter",
                )
        return filled

    def _value(self, workflow: Workflow, written: Reference, arguments: Mapping[str, Any]) -> str | Reference:
        if written.name not in arguments:
            refuse(
                "unknown-name",
                f"the prompt of task {self.name!r} uses {{{{{written.name}}}}}, which is no parameter of its function",
                naming_hint(written.name, arguments, "parameters"),
            )
        value = arguments[written.name]
        if isinstance(value, Symbol):
            reference = value.reference(workflow)
            return Reference(reference.name, written.strip or reference.strip)
        if isinstance(value, str):
            return value.strip() if written.strip else value
        refuse(
            "bad-type",
            f"parameter {written.name!r} of task {self.name!r} is given {type(value).__name__}, not a symbol or a str",
            "turn it into text with str(...)",
        )
        return None


def docstring_text(docstring: str) -> str:
    """A docstring without its first newline, common indent and closing line, as in a `.flow` text in triple quotes."""
    source = SourceText(f'"""{docstring}"""')
    node = Text(start=0, end=len(source.text), raw=docstring, is_long=True)
    return plain_text(source, node, lambda diagnostic: None)
