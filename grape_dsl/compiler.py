"""The compiler: a `Workflow` from any door, checked, lowered and verified."""

from __future__ import annotations

from dataclasses import dataclass

from grape_dsl.checks import check
from grape_dsl.diagnostics import Diagnostic, DiagnosticError
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT, lower
from grape_dsl.lowering.token_counter import TokenCounter
from grape_dsl.workflow import Workflow


@dataclass(frozen=True, slots=True)
class CompiledWorkflow:
    """A program ready to run: the model, its micro-task graph, and the warnings found on the way."""

    workflow: Workflow
    graph: MicroTaskGraph
    diagnostics: tuple[Diagnostic, ...] = ()


def compile(
    workflow: Workflow, *, edge_weight: int = DEFAULT_EDGE_WEIGHT, counter: TokenCounter | None = None
) -> CompiledWorkflow:
    """Check and lower `workflow`.

    Args:
        edge_weight: tokens per chunk of a streamed output, at least 1.
        counter: counts sizes in tokens; without one they are characters.

    Raises:
        DiagnosticError: the program breaks a rule; every finding is in it, warnings too.
        ValueError: `edge_weight` is below 1.
    """
    diagnostics = tuple(check(workflow))
    if any(d.is_error for d in diagnostics):
        raise DiagnosticError(diagnostics)
    return CompiledWorkflow(workflow, lower(workflow, edge_weight=edge_weight, counter=counter), diagnostics)
