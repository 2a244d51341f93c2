"""`@task` and `@workflow`: a workflow as Python functions, traced once into a `Workflow`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NoReturn, TypedDict, Unpack, overload

from grape_dsl.diagnostics import Diagnostic, DiagnosticError, naming_hint
from grape_dsl.prompt import Prompt, RawPrompt, Turn
from grape_dsl.prompt_reading import TextLike, read_prompt
from grape_dsl.symbol import Symbol
from grape_dsl.syntax.literals import plain_text
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.tree import Text
from grape_dsl.task import Options, Slo, Timeout
from grape_dsl.template import Reference, Template
from grape_dsl.variables import InputVar, IntermediateVar, OutputVar
from grape_dsl.workflow import Workflow

_tracing: ContextVar[Workflow | None] = ContextVar("grape_dsl.tracing", default=None)


class TaskOptions(TypedDict, total=False):
    """Options of a task, as in `Workflow.add_task`; of a workflow, the defaults of its tasks."""

    max_tokens: int
    temperature: float
    top_p: float
    stop: str | Sequence[str]
    seed: int
    logprobs: bool | int
    timeout: Timeout
    slo: Slo


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
        self._signature = _signature(function, "task")
        for reserved in ("name", "task_output"):
            if reserved in self._signature.parameters:
                _refuse("bad-name", f"task {self.name!r} has a parameter {reserved!r}, which a call uses for itself")
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, name: str | None = None, task_output: str | None = None, **kwargs: Any) -> Symbol:
        """Add the task to the workflow that is being traced.

        Args:
            name: the task's name; needed where the function is called a second time. Such a call
                writes `NAME_OUTPUT`, unless `task_output` says otherwise.

        Returns:
            The symbol of the variable that the task writes.
        """
        workflow = _tracing.get()
        if workflow is None:
            _refuse("no-workflow", f"task {self.name!r} is called outside a function with @workflow")
        if name is None and self.name in workflow.tasks:
            _refuse(
                "duplicate-name",
                f"task {self.name!r} is called a second time in workflow {workflow.name!r}",
                f"give this call a name: {self.name}(..., name={self.name + '_2'!r})",
            )
        output = task_output or (self.task_output if name is None else f"{name}_{self.task_output}")
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            _refuse("bad-call", f"task {self.name!r} cannot be called like this: {error}")
        bound.apply_defaults()
        prompt = self._prompt(workflow, bound)
        workflow.add_variable(output, IntermediateVar)
        content = prompt if isinstance(prompt, RawPrompt) else prompt.turns
        workflow.add_task(name or self.name, content, task_output=output, **self._options)
        return Symbol(workflow, Reference(output))

    def _prompt(self, workflow: Workflow, bound: inspect.BoundArguments) -> Prompt:
        returned = self._function(*bound.args, **bound.kwargs)
        if returned is None and self._function.__doc__ is None:
            _refuse("no-prompt", f"task {self.name!r} has no docstring and returns nothing, so it has no prompt")
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
                _refuse(
                    "unused-parameter",
                    f"the prompt of task {self.name!r} does not use its parameter {parameter!r}",
                    f"write {{{{{parameter}}}}} in the prompt, or remove the parameter",
                )
        return filled

    def _value(self, workflow: Workflow, written: Reference, arguments: Mapping[str, Any]) -> str | Reference:
        if written.name not in arguments:
            _refuse(
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
        _refuse(
            "bad-type",
            f"parameter {written.name!r} of task {self.name!r} is given {type(value).__name__}, not a symbol or a str",
            "turn it into text with str(...)",
        )
        return None


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
    _check_options(options)

    def decorate(function: Callable[..., Any]) -> TaskFunction:
        return TaskFunction(function, task_output, system, options)

    return decorate


@overload
def workflow(function: Callable[..., Any], /) -> Workflow: ...
@overload
def workflow(
    *, name: str | None = None, about: str | None = None, **defaults: Unpack[TaskOptions]
) -> Callable[[Callable[..., Any]], Workflow]: ...
def workflow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    about: str | None = None,
    **defaults: Unpack[TaskOptions],
) -> Workflow | Callable[[Callable[..., Any]], Workflow]:
    """Trace a function into a `Workflow`, with or without arguments: `@workflow`, `@workflow(temperature=0)`.

    The function is called once, with a symbol for each parameter. Parameters are InputVars, their
    defaults the inputs' defaults. It returns a dict from the names of OutputVars to symbols or text.

    Args:
        name: of the workflow; else the function's.
        about: a sentence that describes it; else the docstring.
        defaults: options of every task that does not give its own.

    Raises:
        DiagnosticError: the function breaks a rule.
    """
    _check_options(defaults)

    def decorate(traced: Callable[..., Any]) -> Workflow:
        described = about or (inspect.cleandoc(traced.__doc__) if traced.__doc__ else None)
        return _trace(traced, Workflow(name or traced.__name__, described, _options(defaults)))

    return decorate if function is None else decorate(function)


def docstring_text(docstring: str) -> str:
    """A docstring without its first newline, common indent and closing line, as in a `.flow` text in triple quotes."""
    source = SourceText(f'"""{docstring}"""')
    node = Text(start=0, end=len(source.text), raw=docstring, is_long=True)
    return plain_text(source, node, lambda diagnostic: None)


def _trace(function: Callable[..., Any], traced: Workflow) -> Workflow:
    symbols = {}
    for parameter in _signature(function, "workflow").parameters.values():
        default = None if parameter.default is parameter.empty else parameter.default
        if default is not None and not isinstance(default, str):
            _refuse("bad-type", f"the default of input {parameter.name!r} is {type(default).__name__}, not a str")
        traced.add_variable(parameter.name, InputVar, default=default)
        symbols[parameter.name] = Symbol(traced, Reference(parameter.name))
    token = _tracing.set(traced)
    try:
        outputs = function(**symbols)
    finally:
        _tracing.reset(token)
    if not isinstance(outputs, dict) or not outputs:
        _refuse(
            "no-outputs",
            f"workflow function {traced.name!r} returned {type(outputs).__name__}, not a dict of its outputs",
            'return {"answer": answer}, where answer is what a task returned',
        )
    for name, value in outputs.items():
        _add_output(traced, name, value)
    return traced


def _add_output(traced: Workflow, name: str, value: object) -> None:
    if isinstance(value, Symbol):
        reference = value.reference(traced)
        variable = traced.variables[reference.name]
        if reference == Reference(name) and variable.kind is IntermediateVar:
            traced.variables[name] = replace(variable, kind=OutputVar)
        else:
            traced.add_variable(name, OutputVar, value=Template.of(reference))
    elif isinstance(value, str):
        traced.add_variable(name, OutputVar, value=Template.of(value))
    else:
        _refuse("bad-type", f"output {name!r} is {type(value).__name__}, not a symbol or a str")


def _signature(function: Callable[..., Any], what: str) -> inspect.Signature:
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            _refuse(
                "bad-parameter",
                f"parameter {parameter.name!r} of {what} function {function.__name__!r} takes no fixed name",
                "write each parameter by name, without *, ** and /",
            )
    annotations = {f"parameter {p.name!r}": p.annotation for p in signature.parameters.values()}
    if what == "task":
        annotations["the result"] = signature.return_annotation
    for where, annotation in annotations.items():
        if not _is_text(annotation):
            written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", repr(annotation))
            _refuse(
                "not-supported",
                f"types other than str are not supported yet: {where} of {what} {function.__name__!r} is {written}",
            )
    return signature


def _is_text(annotation: object) -> bool:
    """Whether an annotation says text, a symbol, or nothing."""
    if isinstance(annotation, str):
        return all(part.strip().rpartition(".")[2] in ("str", "Symbol") for part in annotation.split("|"))
    return annotation in (inspect.Signature.empty, str, Symbol, str | Symbol)


def _options(given: TaskOptions) -> Options:
    stop = given.get("stop")
    fields: dict[str, Any] = {**given, "stop": (stop,) if isinstance(stop, str) else stop and tuple(stop)}
    return Options(**fields)


def _check_options(options: Mapping[str, object]) -> None:
    for name in options:
        if name not in TaskOptions.__annotations__:
            _refuse("unknown-option", f"no option {name!r}", naming_hint(name, TaskOptions.__annotations__, "options"))


def _refuse(code: str, message: str, hint: str | None = None) -> NoReturn:
    raise DiagnosticError([Diagnostic(code, message, hint=hint)])
