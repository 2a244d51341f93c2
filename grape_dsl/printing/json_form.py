"""The graph as JSON, format `grape.graph/1`. docs/graph.md explains it, docs/grape.graph.schema.json is its schema."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from grape_dsl.early_share import Stats
from grape_dsl.graph.micro_task import (
    Edge,
    EdgeKind,
    InputPart,
    KnownPart,
    MicroTask,
    MicroTaskKind,
    Source,
    TurnEnd,
    TurnStart,
)
from grape_dsl.graph.micro_task_graph import MicroTaskGraph, Unit

FORMAT: Literal["grape.graph/1"] = "grape.graph/1"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TextModel(_Model):
    """Fixed text."""

    part: Literal["text"]
    text: str


class InputModel(_Model):
    """The value of an InputVar, inserted when a run starts."""

    part: Literal["input"]
    name: str
    strip: bool


class TurnStartModel(_Model):
    """A turn of the chat template begins."""

    part: Literal["turn_start"]
    role: str


class TurnEndModel(_Model):
    """A turn ends; `open`: the model continues it."""

    part: Literal["turn_end"]
    open: bool


PartModel = Annotated[TextModel | InputModel | TurnStartModel | TurnEndModel, Field(discriminator="part")]


class KnownPrefillModel(_Model):
    """A static or suffix prefill: known text and its size in the graph's unit, inputs left out."""

    id: str
    task: str
    kind: Literal["static_prefill", "suffix_prefill"]
    parts: Annotated[list[PartModel], Field(min_length=1)]
    size: Annotated[int, Field(ge=0)]


class SourceModel(_Model):
    """The output of task `task`; `strip`: without white space at both ends."""

    task: str
    strip: bool


class DynamicPrefillModel(_Model):
    """Another task's output, prefilled as it comes."""

    id: str
    task: str
    kind: Literal["dynamic_prefill"]
    source: SourceModel


class DecodeModel(_Model):
    """The task's own output, written to variable `output`."""

    id: str
    task: str
    kind: Literal["decode"]
    output: str
    max_tokens: int | None


NodeModel = Annotated[KnownPrefillModel | DynamicPrefillModel | DecodeModel, Field(discriminator="kind")]


class EdgeModel(_Model):
    """`target` waits for `source`; `weight`, tokens per chunk, is set on partial edges only."""

    source: str
    target: str
    kind: Literal["strong", "partial", "full"]
    weight: Annotated[int, Field(ge=1)] | None


class GraphModel(_Model):
    """A lowered workflow. `tasks`, and the nodes by task, stand in topological order."""

    format: Literal["grape.graph/1"]
    workflow: str
    unit: Unit
    tasks: list[str]
    nodes: list[NodeModel]
    edges: list[EdgeModel]
    stats: Stats | None = None


def to_model(graph: MicroTaskGraph, stats: Stats | None = None) -> GraphModel:
    tasks = graph.tasks()
    nodes = [_node(node) for task in tasks for node in graph.chain(task)]
    place = {node.id: number for number, node in enumerate(nodes)}
    edges = [
        EdgeModel(source=source, target=target, kind=edge.kind.value, weight=edge.weight)
        for source, target, edge in sorted(graph.edges(), key=lambda e: (place[e[1]], place[e[0]]))
    ]
    return GraphModel(
        format=FORMAT, workflow=graph.workflow, unit=graph.unit, tasks=tasks, nodes=nodes, edges=edges, stats=stats
    )


def to_json(graph: MicroTaskGraph, stats: Stats | None = None) -> str:
    """The document, two spaces deep, ending in a newline; `stats` only if given."""
    model = to_model(graph, stats)
    return model.model_dump_json(indent=2, exclude=None if stats else {"stats"}) + "\n"


def from_json(text: str | bytes) -> MicroTaskGraph:
    """The graph that `to_json` printed.

    Raises:
        pydantic.ValidationError: not a `grape.graph/1` document.
    """
    model = GraphModel.model_validate_json(text)
    graph = MicroTaskGraph(model.workflow, model.unit)
    for node in model.nodes:
        graph.add(_micro_task(node))
    for edge in model.edges:
        graph.connect(edge.source, edge.target, Edge(EdgeKind(edge.kind), edge.weight))
    return graph


def _node(node: MicroTask) -> KnownPrefillModel | DynamicPrefillModel | DecodeModel:
    if node.source is not None:
        source = SourceModel(task=node.source.task, strip=node.source.strip)
        return DynamicPrefillModel(id=node.id, task=node.task, kind="dynamic_prefill", source=source)
    if node.output is not None:
        return DecodeModel(id=node.id, task=node.task, kind="decode", output=node.output, max_tokens=node.size)
    kind: Literal["static_prefill", "suffix_prefill"] = (
        "static_prefill" if node.kind is MicroTaskKind.STATIC_PREFILL else "suffix_prefill"
    )
    assert node.size is not None
    return KnownPrefillModel(
        id=node.id, task=node.task, kind=kind, parts=[_part(part) for part in node.parts], size=node.size
    )


def _part(part: KnownPart) -> TextModel | InputModel | TurnStartModel | TurnEndModel:
    match part:
        case str():
            return TextModel(part="text", text=part)
        case InputPart(name, strip):
            return InputModel(part="input", name=name, strip=strip)
        case TurnStart(role):
            return TurnStartModel(part="turn_start", role=role)
        case TurnEnd(is_open):
            return TurnEndModel(part="turn_end", open=is_open)


def _micro_task(node: KnownPrefillModel | DynamicPrefillModel | DecodeModel) -> MicroTask:
    kind = MicroTaskKind(node.kind)
    match node:
        case DynamicPrefillModel():
            return MicroTask(node.id, node.task, kind, source=Source(node.source.task, node.source.strip))
        case DecodeModel():
            return MicroTask(node.id, node.task, kind, size=node.max_tokens, output=node.output)
        case KnownPrefillModel():
            return MicroTask(node.id, node.task, kind, parts=tuple(map(_known_part, node.parts)), size=node.size)


def _known_part(part: TextModel | InputModel | TurnStartModel | TurnEndModel) -> KnownPart:
    match part:
        case TextModel():
            return part.text
        case InputModel():
            return InputPart(part.name, part.strip)
        case TurnStartModel():
            return TurnStart(part.role)
        case TurnEndModel():
            return TurnEnd(part.open)
