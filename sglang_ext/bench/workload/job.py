"""`Job`: one run of a workload, for an engine and for the simulator alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from grape_dsl.compiler import CompiledWorkflow


@dataclass(frozen=True, slots=True)
class Text:
    """A known stretch of a prompt.

    Args:
        key: two stretches with equal keys are the same text.
        tokens: its length.
    """

    key: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Hole:
    """What the output of `task` fills."""

    task: str


@dataclass(frozen=True)
class TaskShape:
    """One model call by its sizes.

    Args:
        segments: the prompt in order.
        output: tokens that it writes, one at least.
        limit: the most that it may write; what an engine is told.
    """

    name: str
    segments: tuple[Text | Hole, ...]
    output: int
    limit: int

    @cached_property
    def upstream(self) -> tuple[str, ...]:
        """The tasks that fill its holes, each once, in prompt order."""
        return tuple(dict.fromkeys(segment.task for segment in self.segments if isinstance(segment, Hole)))

    @cached_property
    def known_prefix(self) -> int:
        """Tokens before the first hole."""
        total = 0
        for segment in self.segments:
            if isinstance(segment, Hole):
                return total
            total += segment.tokens
        return total

    @cached_property
    def known(self) -> int:
        """Tokens of all known text."""
        return sum(segment.tokens for segment in self.segments if isinstance(segment, Text))


@dataclass(frozen=True)
class Job:
    """One run.

    Args:
        index: its number among the jobs of a repetition; with `arrival_s`, seconds from the start, never decreasing.
        tasks: in topological order.
        program, inputs: the same run for a driver.
        forced: outputs have exactly the length `output`, whatever the model says; else it is an estimate.
    """

    index: int
    workload: str
    arrival_s: float
    tasks: tuple[TaskShape, ...]
    program: CompiledWorkflow = field(repr=False)
    inputs: Mapping[str, str] = field(repr=False)
    forced: bool = True

    @cached_property
    def by_name(self) -> dict[str, TaskShape]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """The tasks whose prompts have a task's output, by its name."""
        return {t.name: tuple(r.name for r in self.tasks if t.name in r.upstream) for t in self.tasks}

    @cached_property
    def outputs(self) -> dict[str, int]:
        """Tokens of each task's output."""
        return {task.name: task.output for task in self.tasks}

    def prompt_tokens(self, task: TaskShape) -> int:
        """The length of the complete prompt."""
        return task.known + sum(self.by_name[s.task].output for s in task.segments if isinstance(s, Hole))
