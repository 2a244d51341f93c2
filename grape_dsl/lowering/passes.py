"""The passes, in order, with the verifier behind each of them."""

from __future__ import annotations

from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.graph.verifier import verify
from grape_dsl.lowering.measure import measure
from grape_dsl.lowering.pieces import prompts_of
from grape_dsl.lowering.split import split
from grape_dsl.lowering.token_counter import TokenCounter
from grape_dsl.workflow import Workflow

DEFAULT_EDGE_WEIGHT = 16


def lower(
    workflow: Workflow, *, edge_weight: int = DEFAULT_EDGE_WEIGHT, counter: TokenCounter | None = None
) -> MicroTaskGraph:
    """Lower `workflow`, which `grape_dsl.checks.check` has found free of errors.

    Args:
        edge_weight: tokens per chunk of a streamed output, at least 1.
        counter: counts sizes in tokens; without one they are characters.

    Raises:
        ValueError: `edge_weight` is below 1.
        DiagnosticError: a fragment is used in a way that is not supported.
        VerificationError: a pass built a wrong graph, which is a fault of the compiler.
    """
    if edge_weight < 1:
        raise ValueError(f"edge_weight counts the tokens of a chunk and must be at least 1, got {edge_weight}")
    prompts = prompts_of(workflow)
    graph = split(workflow, prompts, edge_weight)
    verify(graph, prompts)
    measure(graph, counter)
    verify(graph, prompts)
    return graph
