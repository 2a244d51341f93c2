"""What is expected of tasks that have not ended: from the outputs seen so far, by the name of the task."""

from __future__ import annotations

from dataclasses import dataclass, field

from sglang_ext.bench.simulation.request import Request, Run
from sglang_ext.bench.workload.job import Hole

# Of an output before the first one of its task has ended.
FIRST_GUESS = 64.0
# The rest of an output that has outgrown its mean, as a share of the mean.
FLOOR = 0.15


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


@dataclass(slots=True)
class Estimates:
    """Running means of the lengths of outputs."""

    _means: dict[str, tuple[float, int]] = field(default_factory=dict)

    def learn(self, task: str, tokens: int) -> None:
        mean, seen = self._means.get(task, (0.0, 0))
        self._means[task] = (mean + (tokens - mean) / (seen + 1), seen + 1)

    def length(self, task: str) -> float:
        """The expected length of an output of which nothing is known."""
        return self._means.get(task, (FIRST_GUESS, 0))[0]

    def rest(self, run: Run, task: str) -> float:
        """Tokens still to come of a task's output."""
        if run.ended(task):
            return 0.0
        mean = self.length(task)
        return max(FLOOR * mean, mean - run.written(task))

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
