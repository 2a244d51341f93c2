"""`RunWork`: one run as ids and holes, with the lengths of its outputs. Every client of a bench gets the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sglang_ext.bench.token_stream import TokenStream
from sglang_ext.driver.prompts import TaskPlan
from sglang_ext.tasks.hint import Known
from sglang_ext.tasks.output_ids import TextCodec, reader_ids, strip_ids


@dataclass(frozen=True)
class RunWork:
    """Args:
    plans: the run's tasks by name, in topological order.
    outputs: tokens that each task writes, one at least.
    codec: of the model's tokenizer.
    """

    plans: Mapping[str, TaskPlan]
    outputs: Mapping[str, int]
    codec: TextCodec


@dataclass(frozen=True, slots=True)
class FinishedOutput:
    """The ids of an output of forced length, as its readers get them."""

    ids: Sequence[int]
    codec: TextCodec

    def reader_ids(self, left: bool, right: bool) -> list[int]:
        return strip_ids(reader_ids(self.ids, None, self.codec), left, right, self.codec)


class RunStreams:
    """The outputs of one run under way.

    Attributes:
        run: its id.
        by_task: each task's tokens so far.
    """

    def __init__(self, run: str, work: RunWork) -> None:
        self.run = run
        self.work = work
        self.by_task = {name: TokenStream(name, tokens) for name, tokens in work.outputs.items()}

    def finished(self) -> dict[str, FinishedOutput]:
        """The outputs that have ended."""
        return {
            name: FinishedOutput(stream.ids, self.work.codec) for name, stream in self.by_task.items() if stream.ended
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
