"""`@workflow`: a function, called once with symbols, as a `Workflow`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack, overload

from grape_dsl.decorators.options import TaskOptions, as_options, check_options
from grape_dsl.decorators.signature import refuse, traceable_signature
from grape_dsl.decorators.symbol import Symbol
from grape_dsl.decorators.task_function import tracing
from grape_dsl.template import Reference, Template
from grape_dsl.variables import InputVar, IntermediateVar, OutputVar
from grape_dsl.workflow import Workflow


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
    check_options(defaults)

    def decorate(traced: Callable[..., Any]) -> Workflow:
        described = about or (inspect.cleandoc(traced.__doc__) if traced.__doc__ else None)
        return _trace(traced, Workflow(name or traced.__name__, described, as_options(defaults)))

    return decorate if function is None else decorate(function)


def _trace(function: Callable[..., Any], traced: Workflow) -> Workflow:
    symbols = {}
    for parameter in traceable_signature(function, "workflow").parameters.values():
        default = None if parameter.default is parameter.empty else parameter.default
        if default is not None and not isinstance(default, str):
            refuse("bad-type", f"the default of input {parameter.name!r} is {type(default).__name__}, not a str")
        traced.add_variable(parameter.name, InputVar, default=default)
        symbols[parameter.name] = Symbol(traced, Reference(parameter.name))
    token = tracing.set(traced)
    try:
        outputs = function(**symbols)
    finally:
        tracing.reset(token)
    if not isinstance(outputs, dict) or not outputs:
        refuse(
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
        refuse("bad-type", f"output {name!r} is {type(value).__name__}, not a symbol or a str")
