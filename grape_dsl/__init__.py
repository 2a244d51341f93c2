"""Grape: workflows of LLM calls, compiled to micro-tasks. The language and the compiler; never torch or SGLang.

Names are loaded when they are first used. The decorators `task` and `workflow` are in `grape_dsl.decorators`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grape_dsl.compiler import CompiledWorkflow, compile
    from grape_dsl.diagnostics import Diagnostic, DiagnosticError
    from grape_dsl.graph.micro_task_graph import MicroTaskGraph
    from grape_dsl.prompt_reading import assistant, raw, system, user
    from grape_dsl.syntax import load, parse_text
    from grape_dsl.task import Latency, Slo, Timeout
    from grape_dsl.variables import InputVar, IntermediateVar, OutputVar
    from grape_dsl.workflow import Workflow

_PLACES = {
    "CompiledWorkflow": "compiler",
    "compile": "compiler",
    "Diagnostic": "diagnostics",
    "DiagnosticError": "diagnostics",
    "MicroTaskGraph": "graph.micro_task_graph",
    "assistant": "prompt_reading",
    "raw": "prompt_reading",
    "system": "prompt_reading",
    "user": "prompt_reading",
    "load": "syntax",
    "parse_text": "syntax",
    "Latency": "task",
    "Slo": "task",
    "Timeout": "task",
    "InputVar": "variables",
    "IntermediateVar": "variables",
    "OutputVar": "variables",
    "Workflow": "workflow",
}

__all__ = [
    "CompiledWorkflow",
    "Diagnostic",
    "DiagnosticError",
    "InputVar",
    "IntermediateVar",
    "Latency",
    "MicroTaskGraph",
    "OutputVar",
    "Slo",
    "Timeout",
    "Workflow",
    "assistant",
    "compile",
    "load",
    "parse_text",
    "raw",
    "system",
    "user",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
