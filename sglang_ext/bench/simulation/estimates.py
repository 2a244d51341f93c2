"""What is expected of a run's tasks that have not ended."""

from __future__ import annotations

from dataclasses import dataclass

from sglang_ext.bench.simulation.request import Request, Run
from sglang_ext.bench.workload.job import Hole
from sglang_ext.policy.output_lengths import OutputLengths


@dataclass(frozen=True, slots=True)
class Ahead:
    """What stands before a task's first token.

    Args:
        hops: decodes that must end before its own can start.
        steps: decode steps until its prompt is complete, prefill not counted.
        rest: tokens still to come of its own output.
    """

    hops: int
    steps: float
    rest: float


class Estimates:
    """Expectations from the outputs that have ended so far; the lengths that are forced are not looked at."""

    def __init__(self) -> None:
        self._lengths = OutputLengths()

    def learn(self, run: Run, task: str) -> None:
        """A task has ended."""
        self._lengths.learn(_name(run, task), run.written(task))

    def rest(self, run: Run, task: str) -> float:
        """Tokens still to come of a task's output."""
        return 0.0 if run.ended(task) else self._lengths.rest(_name(run, task), run.written(task))

    def ahead(self, run: Run) -> dict[str, Ahead]:
        """What stands before each task of a run that has not ended, by its name."""
        found: dict[str, Ahead] = {}
        for task in run.job.tasks:
            if run.ended(task.name):
                continue
            hops, steps = 0, 0.0
            for up in task.upstream:
                before = found.get(up)
                if before is not None:
                    hops = max(hops, before.hops + 1)
                    steps = max(steps, before.steps + before.rest)
            found[task.name] = Ahead(hops, steps, self.rest(run, task.name))
        return found

    def to_come(self, request: Request) -> int:
        """Tokens of a prompt that are not known yet."""
        run, total = request.run, 0.0
        for segment in request.shape.segments:
            if isinstance(segment, Hole):
                total += run.written(segment.task) + self.rest(run, segment.task)
            else:
                total += segment.tokens
        return max(0, round(total) - request.known)


def _name(run: Run, task: str) -> str:
    return f"{run.job.workload}/{task}"
