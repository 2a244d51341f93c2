"""A run's prompts: the compiled graph and the inputs become the token ids and holes of each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grape_dsl.compiler import CompiledWorkflow
from grape_dsl.encoding import ChatEncoder, Hole
from grape_dsl.graph.micro_task import InputPart, MicroTask, MicroTaskKind, TurnEnd, TurnStart
from grape_dsl.graph.micro_task_graph import MicroTaskGraph
from grape_dsl.task import Options
from sglang_ext.tasks.hint import Identity, Known, OutputHole, Strip


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What one task of a run needs to be submitted.

    Args:
        index: the task's number in the run, in topological order from 0.
        variable: what its output is called.
        readers: the tasks whose prompts have its output.
    """

    name: str
    index: int
    variable: str
    options: Options
    segments: tuple[Known | OutputHole, ...]
    readers: tuple[str, ...]

    @property
    def upstream(self) -> tuple[str, ...]:
        """The tasks whose outputs this one's prompt has, each once, in prompt order."""
        return tuple(dict.fromkeys(segment.task for segment in self.segments if isinstance(segment, OutputHole)))


def plan_tasks(program: CompiledWorkflow, inputs: Mapping[str, str], encoder: ChatEncoder) -> dict[str, TaskPlan]:
    """The plans of a run's tasks by name, in topological order.

    Args:
        inputs: the value of every InputVar.
    """
    graph, workflow = program.graph, program.workflow
    names = graph.tasks()
    segments = {name: tuple(_segments(graph, name, inputs, encoder)) for name in names}
    readers: dict[str, list[str]] = {name: [] for name in names}
    for name in names:
        for source in dict.fromkeys(s.task for s in segments[name] if isinstance(s, OutputHole)):
            readers[source].append(name)
    return {
        name: TaskPlan(
            name,
            index,
            workflow.tasks[name].output,
            workflow.options(workflow.tasks[name]),
            segments[name],
            tuple(readers[name]),
        )
        for index, name in enumerate(names)
    }


def _segments(
    graph: MicroTaskGraph, task: str, inputs: Mapping[str, str], encoder: ChatEncoder
) -> Iterator[Known | OutputHole]:
    chain = graph.chain(task)
    late = iter([node for node in chain if node.kind is MicroTaskKind.DYNAMIC_PREFILL])
    for part in encoder.encode(list(_pieces(chain, inputs))):
        if not isinstance(part, Hole):
            yield Known(ids=list(part))
            continue
        strip = part.strip_left or part.strip_right
        weight = graph.digraph.edges[f"{part.task}/decode", next(late).id]["edge"].weight
        transform = Strip(left=part.strip_left, right=part.strip_right) if strip else Identity()
        yield OutputHole(task=part.task, transform=transform, weight=weight)


def _pieces(chain: list[MicroTask], inputs: Mapping[str, str]) -> Iterator[str | TurnStart | TurnEnd | Hole]:
    for node in chain:
        for part in node.parts:
            if isinstance(part, InputPart):
                yield inputs[part.name].strip() if part.strip else inputs[part.name]
            else:
                yield part
        if node.source is not None:
            yield Hole(node.source.task, node.source.strip, node.source.strip)
