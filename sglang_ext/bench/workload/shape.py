"""From a compiled program and its inputs to the sizes of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grape_dsl.compiler import CompiledWorkflow
from grape_dsl.graph.micro_task import InputPart, KnownPart, TurnEnd, TurnStart
from sglang_ext.bench.workload.counting import CountTokens
from sglang_ext.bench.workload.job import Hole, TaskShape, Text

# Of a ChatML template: a turn's start with its role, its end, and the answer's start.
_START, _END, _ANSWER = 3, 2, 3


def shapes(
    program: CompiledWorkflow, inputs: Mapping[str, str], outputs: Mapping[str, int], count: CountTokens
) -> tuple[TaskShape, ...]:
    """The tasks of a run in topological order.

    Args:
        inputs: the value of every InputVar.
        outputs: tokens that each task writes.
    """
    return tuple(
        TaskShape(
            name=name,
            segments=tuple(_segments(program, name, inputs, count)),
            output=outputs[name],
            limit=max(outputs[name], program.workflow.options(program.workflow.tasks[name]).max_tokens or 0),
        )
        for name in program.graph.tasks()
    )


def _segments(
    program: CompiledWorkflow, task: str, inputs: Mapping[str, str], count: CountTokens
) -> Iterator[Text | Hole]:
    """Fixed text and every input as segments of their own, so that runs share what is equal."""
    fixed: list[KnownPart] = []
    for node in program.graph.chain(task)[:-1]:
        for part in node.parts:
            if not isinstance(part, InputPart):
                fixed.append(part)
                continue
            yield from _fixed(fixed, count)
            fixed = []
            value = inputs[part.name].strip() if part.strip else inputs[part.name]
            if value:
                yield Text(value, count(value))
        if node.source is not None:
            yield from _fixed(fixed, count)
            fixed = []
            yield Hole(node.source.task)
    yield from _fixed(fixed, count, answer=not any(isinstance(part, TurnEnd) and part.open for part in fixed))


def _fixed(parts: list[KnownPart], count: CountTokens, answer: bool = False) -> Iterator[Text]:
    key, tokens = "", 0
    for part in parts:
        if isinstance(part, TurnStart):
            key, tokens = f"{key}<|{part.role}|>", tokens + _START
        elif isinstance(part, TurnEnd):
            key, tokens = key + ("" if part.open else "<|end|>"), tokens + (0 if part.open else _END)
        elif isinstance(part, str):
            key, tokens = key + part, tokens + count(part)
    if answer:
        key, tokens = key + "<|answer|>", tokens + _ANSWER
    if tokens:
        yield Text(key, tokens)
