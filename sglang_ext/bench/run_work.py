"""`RunWork`: one run as ids and holes, with the lengths of its outputs. Every client of a bench gets the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sglang_ext.bench.token_stream import TokenStream
from sglang_ext.driver.engine_client import GenerateRequest
from sglang_ext.driver.prompts import TaskPlan
from sglang_ext.tasks.hint import Known
from sglang_ext.tasks.output_ids import Matched, TextCodec, reader_ids, strip_ids


@dataclass(frozen=True)
class RunWork:
    """Args:
    plans: the run's tasks by name, in topological order.
    outputs: tokens that each task writes, one at least.
    codec: of the model's tokenizer.
    forced: outputs have exactly these lengths; else the model ends them, within the program's own limits.
    """

    plans: Mapping[str, TaskPlan]
    outputs: Mapping[str, int]
    codec: TextCodec
    forced: bool = True

    def stream(self, task: str) -> TokenStream:
        """For the output of a task."""
        return TokenStream(task, self.outputs[task] if self.forced else None)

    def sampled(self, task: str, request: GenerateRequest) -> GenerateRequest:
        """A task's request, greedy, and of its forced length, so that every arm does the same work."""
        own = forced_sampling(self.outputs[task]) if self.forced else {**request.sampling, "temperature": 0.0}
        return replace(request, sampling=own)


def forced_sampling(tokens: int) -> dict[str, Any]:
    return {"temperature": 0.0, "max_new_tokens": tokens, "ignore_eos": True}


@dataclass(frozen=True, slots=True)
class FinishedOutput:
    """The ids of an output as its readers get them. Args: matched: what ended it."""

    ids: Sequence[int]
    matched: Matched
    codec: TextCodec

    def reader_ids(self, left: bool, right: bool) -> list[int]:
        return strip_ids(reader_ids(self.ids, self.matched, self.codec), left, right, self.codec)


class RunStreams:
    """The outputs of one run under way.

    Attributes:
        run: its id.
        by_task: each task's tokens so far.
    """

    def __init__(self, run: str, work: RunWork) -> None:
        self.run = run
        self.work = work
        self.by_task = {name: work.stream(name) for name in work.plans}

    def finished(self) -> dict[str, FinishedOutput]:
        """The outputs that have ended."""
        return {
            name: FinishedOutput(stream.ids, (stream.finish or {}).get("matched"), self.work.codec)
            for name, stream in self.by_task.items()
            if stream.ended
        }

    def prefix(self, task: TaskPlan, every: int) -> tuple[list[int], str | None]:
        """A task's prompt up to its first output that is not complete, and the task that writes this.

        Args:
            every: of that output whole multiples of so many tokens are given.
        """
        ids: list[int] = []
        finished = self.finished()
        for segment in task.segments:
            if isinstance(segment, Known):
                ids += segment.ids
            elif segment.task in finished:
                ids += finished[segment.task].reader_ids(*segment.sides)
            else:
                written = self.by_task[segment.task].ids
                # White space at its end may turn out to be inside.
                left, _ = segment.sides
                return ids + strip_ids(written[: len(written) // every * every], left, False, self.work.codec), (
                    segment.task
                )
        return ids, None
