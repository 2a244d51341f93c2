"""What is expected of tasks that have not ended: from the outputs seen so far, by the name of the task."""

from __future__ import annotations

from dataclasses import dataclass, field

from sglang_ext.bench.simulation.request import Request, Run
from sglang_ext.bench.workload.job import Hole

# Of an output before the first one of its task has ended.
FIRST_GUESS = 64.0
# The rest of an output that has outgrown its mean, as a share of the mean.
FLOOR = 0.15


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

    def hops(self, run: Run, task: str) -> int:
        """Decodes that must end before this task's own can start."""
        return max(
            (1 + self.hops(run, up) for up in run.job.by_name[task].upstream if not run.ended(up)),
            default=0,
        )

    def wait(self, run: Run, task: str) -> float:
        """Decode steps until a task's prompt is complete, prefill not counted."""
        return max(
            (self.rest(run, up) + self.wait(run, up) for up in run.job.by_name[task].upstream if not run.ended(up)),
            default=0.0,
        )

    def to_come(self, request: Request) -> int:
        """Tokens of a prompt that are not known yet."""
        run, total = request.run, 0.0
        for segment in request.shape.segments:
            if isinstance(segment, Hole):
                total += run.written(segment.task) + self.rest(run, segment.task)
            else:
                total += segment.tokens
        return max(0, round(total) - request.known)
