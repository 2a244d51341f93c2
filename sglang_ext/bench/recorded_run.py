"""A run as it was recorded: when each token of each task left the engine."""

from __future__ import annotations

from itertools import pairwise
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator


class RecordedTask(BaseModel):
    """One task of a run.

    Args:
        upstream: tasks of the run whose outputs its prompt has.
        token_s: when its tokens left, never decreasing, one at least.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    upstream: tuple[str, ...] = ()
    token_s: tuple[float, ...]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.token_s:
            raise ValueError(f"task {self.name!r} has no token")
        if any(b < a for a, b in pairwise(self.token_s)):
            raise ValueError(f"the times of task {self.name!r} decrease")
        return self


class RecordedRun(BaseModel):
    """One run. Times are seconds on one clock.

    Args:
        index: its number in its repetition; runs of two arms with equal numbers did the same work.
        workload: what it is; runs of `chat` are ordinary requests.
        tasks: in topological order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int
    workload: str
    submitted_s: float
    tasks: tuple[RecordedTask, ...]

    @model_validator(mode="after")
    def _known(self) -> Self:
        seen: set[str] = set()
        for task in self.tasks:
            for up in task.upstream:
                if up not in seen:
                    raise ValueError(f"task {task.name!r} reads {up!r}, which does not come before it")
            seen.add(task.name)
        if not seen:
            raise ValueError("a run has one task at least")
        return self

    @property
    def first_token_s(self) -> float:
        """From submission to the run's first token."""
        return min(task.token_s[0] for task in self.tasks) - self.submitted_s

    @property
    def final_token_s(self) -> float:
        """From submission to the first token of the final answer: of the last task that nobody reads."""
        read = {up for task in self.tasks for up in task.upstream}
        final = [task for task in self.tasks if task.name not in read][-1]
        return final.token_s[0] - self.submitted_s

    @property
    def completion_s(self) -> float:
        return self.end_s - self.submitted_s

    @property
    def end_s(self) -> float:
        return max(task.token_s[-1] for task in self.tasks)

    @property
    def tokens(self) -> int:
        return sum(len(task.token_s) for task in self.tasks)

    def line_gaps(self) -> list[float]:
        """Between neighbouring tokens of all tasks on one time line; the wait before the first is none."""
        stamps = sorted(stamp for task in self.tasks for stamp in task.token_s)
        return [b - a for a, b in pairwise(stamps)]

    def switch_gaps(self) -> list[float]:
        """From the last token of the upstream that ended last to the task's first, for every task that reads one."""
        last = {task.name: task.token_s[-1] for task in self.tasks}
        return [task.token_s[0] - max(last[up] for up in task.upstream) for task in self.tasks if task.upstream]

    def chain_gaps(self) -> list[float]:
        """Along the chains of tasks: within each task, and at each switch; parallel branches do not thin them out."""
        inside = [b - a for task in self.tasks for a, b in pairwise(task.token_s)]
        return inside + self.switch_gaps()
