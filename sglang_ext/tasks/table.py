"""The task table: all runs that the engine knows, and the way from outputs to prompts."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from sglang_ext.tasks.hint import OutputHole, TaskHint, read_request_id
from sglang_ext.tasks.output_ids import Matched
from sglang_ext.tasks.outputs import Feed, MakeStream, Output, Source
from sglang_ext.tasks.state import TaskState
from sglang_ext.tasks.task import Task

# Ended runs that are remembered, so that a late task of one is refused at once.
REMEMBERED_RUNS = 4096


class TaskRefused(ValueError):
    """A task that is not taken; the message says why, `status` is the HTTP status for it."""

    def __init__(self, message: str, status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class _Run:
    size: int
    tasks: dict[str, Task] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)
    indices: set[int] = field(default_factory=set)
    # For each task those that read its output, as far as they have arrived.
    readers: dict[str, list[Task]] = field(default_factory=dict)
    # Worked out once, and emptied when a task comes, ends, or has its whole prompt; by request id.
    waits: dict[str, list[Task | None]] = field(default_factory=dict)
    hops: dict[str, int] = field(default_factory=dict)
    produced: bool = False

    def changed(self) -> None:
        self.waits.clear()
        self.hops.clear()

    @property
    def over(self) -> bool:
        return len(self.tasks) == self.size and not any(task.alive for task in self.tasks.values())

    def cycle(self, hint: TaskHint) -> list[str] | None:
        """The way from a new task over what it reads back to itself, if there is one."""
        if hint.task not in self.readers:
            return None
        came_from: dict[str, str] = {}
        stack = [hint]
        while stack:
            reader = stack.pop()
            for hole in reader.holes:
                if hole.task in came_from:
                    continue
                came_from[hole.task] = reader.task
                if hole.task == hint.task:
                    path = [hint.task, reader.task]
                    while path[-1] != hint.task:
                        path.append(came_from[path[-1]])
                    return path[::-1]
                upstream = self.tasks.get(hole.task)
                # A complete prompt waits for nothing.
                if upstream is not None and not upstream.complete:
                    stack.append(upstream.hint)
        return None


class RunTable:
    """Runs and their tasks. One run's end never touches another's.

    Args:
        max_tasks: tasks that one run may have.
    """

    def __init__(self, max_tasks: int = 10_000) -> None:
        self.max_tasks = max_tasks
        self._runs: dict[str, _Run] = {}
        self._ended: OrderedDict[str, str] = OrderedDict()
        self._by_rid: dict[str, Task] = {}
        self._arrivals = 0
        self._changed: set[str] = set()

    def __len__(self) -> int:
        """Tasks that are alive."""
        return len(self._by_rid)

    def __iter__(self) -> Iterator[Task]:
        """The tasks that are alive, in the order of arrival."""
        return iter(tuple(self._by_rid.values()))

    def get(self, rid: str) -> Task | None:
        """The living task with request id `rid`."""
        return self._by_rid.get(rid)

    def knows(self, run_id: str) -> bool:
        """Whether tasks of this run have arrived, and it has not ended."""
        return run_id in self._runs

    def awaits(self, rid: str) -> str | None:
        """The run of the task with request id `rid`, if that may still arrive."""
        run_id, index = read_request_id(rid) or ("", 0)
        if not run_id or run_id in self._ended:
            return None
        run = self._runs.get(run_id)
        return run_id if run is None or index not in run.indices else None

    def run_of(self, task: Task) -> list[Task]:
        """The living tasks of the same run, in the order of arrival."""
        run = self._runs.get(task.hint.run)
        return [] if run is None else [t for t in run.tasks.values() if t.alive]

    def add(self, hint: TaskHint, make_stream: MakeStream, source: Source | None = None) -> Task:
        """Take a task.

        Args:
            make_stream: makes the streams of this task's own output.
            source: ids of it that were not pushed.

        Raises:
            TaskRefused: its run has ended, its name or number is taken, the run's size differs or is too large,
                or tasks would wait for each other.
        """
        if (reason := self._ended.get(hint.run)) is not None:
            raise TaskRefused(f"run {hint.run} has ended: {reason}")
        if hint.tasks > self.max_tasks:
            raise TaskRefused(f"a run may have {self.max_tasks} tasks, this one says {hint.tasks}")
        if hint.index >= hint.tasks:
            raise TaskRefused(f"its number {hint.index} is not below the {hint.tasks} tasks that its run has")
        self._forget_dormant()
        run = self._runs.get(hint.run) or _Run(hint.tasks)
        if run.size != hint.tasks:
            raise TaskRefused(f"it says that its run has {hint.tasks} tasks, others said {run.size}")
        if hint.task in run.tasks:
            raise TaskRefused("its run has a task of that name already")
        if hint.index in run.indices:
            raise TaskRefused(f"its run has a task with number {hint.index} already")
        if (path := run.cycle(hint)) is not None:
            raise TaskRefused(f"these tasks wait for each other: {' reads '.join(map(repr, path))}")
        self._runs[hint.run] = run
        task = Task(hint, self._arrivals)
        self._arrivals += 1
        run.tasks[hint.task] = task
        run.indices.add(hint.index)
        for upstream in dict.fromkeys(hole.task for hole in hint.holes):
            run.readers.setdefault(upstream, []).append(task)
        self._note(task, run)
        run.outputs[hint.task] = Output(make_stream, source)
        self._by_rid[task.rid] = task
        return task

    def grow(self, task: Task) -> int:
        """Append to the task's prompt what has become known; returns how many ids."""
        run = self._runs[task.hint.run]

        def find(hole: OutputHole) -> Feed | None:
            output = run.outputs.get(hole.task)
            return None if output is None else output.feed(*hole.sides)

        was_complete = task.complete
        grown = task.grow(find)
        if task.complete is not was_complete:
            self._note(task, run)
        return grown

    def push(self, task: Task, ids: Sequence[int]) -> list[Task]:
        """The task has decoded these ids; returns the readers whose prompts can grow with them."""
        run = self._runs[task.hint.run]
        run.outputs[task.hint.task].push(ids)
        run.produced = True
        return [reader for reader in run.readers.get(task.hint.task, ()) if reader.stirs(task.hint.task)]

    def stirs_from(self, task: Task) -> float:
        """The least length of the task's output with which a reader's prompt can grow; infinite if there is none."""
        readers = self._runs[task.hint.run].readers.get(task.hint.task, ())
        return min((reader.stirs_from(task.hint.task) for reader in readers), default=math.inf)

    def waits_at(self, task: Task) -> Task | None:
        """The task whose output the prompt stops at, if that has arrived."""
        hole = task.open_hole
        return None if hole is None else self._runs[task.hint.run].tasks.get(hole.task)

    def take_changed(self) -> set[str]:
        """The runs in which since the last call a task came, ended, or had its whole prompt."""
        changed, self._changed = self._changed, set()
        return changed

    def known_hops(self, task: Task) -> dict[str, int]:
        """Where hops of the run's tasks are kept by request id; emptied when they may have changed."""
        return self._runs[task.hint.run].hops

    def output(self, task: Task) -> Output:
        return self._runs[task.hint.run].outputs[task.hint.task]

    def missing_upstream(self, task: Task) -> str | None:
        """The task that the open hole waits for, if it has not arrived."""
        hole = task.open_hole
        if hole is None or hole.task in self._runs[task.hint.run].tasks:
            return None
        return hole.task

    def has_produced(self, run_id: str) -> bool:
        """Whether a token of any of the run's tasks has appeared."""
        run = self._runs.get(run_id)
        return run is not None and run.produced

    def waits_for(self, task: Task) -> list[Task | None]:
        """The tasks that the open holes of this one wait for: not ended, None where one has not come."""
        run = self._runs[task.hint.run]
        known = run.waits.get(task.rid)
        if known is None:
            found: dict[str, Task | None] = {}
            for hole in task.hint.holes:
                output = run.outputs.get(hole.task)
                if output is None or not output.ended:
                    found[hole.task] = run.tasks.get(hole.task)
            known = run.waits[task.rid] = list(found.values())
        return known

    def upstreams_ended(self, task: Task) -> bool:
        """Whether every task that this one reads has ended well."""
        outputs = self._runs[task.hint.run].outputs
        return all(hole.task in outputs and outputs[hole.task].ended for hole in task.hint.holes)

    def finish(self, task: Task, final_ids: Sequence[int], matched: Matched) -> list[Task]:
        """The task ended well with raw output `final_ids`; returns its readers."""
        self.output(task).finish(final_ids, matched)
        task.move(TaskState.FINISHED)
        del self._by_rid[task.rid]
        run = self._runs[task.hint.run]
        run.produced = run.produced or bool(final_ids)
        self._note(task, run)
        if run.over:
            del self._runs[task.hint.run]
            self._remember(task.hint.run, "all of its tasks have ended")
        return run.readers.get(task.hint.task, [])

    def end_run(self, run_id: str, reason: str) -> list[Task]:
        """Abort a run: every living task becomes `aborted`, late ones will be refused.

        Returns:
            The tasks that were alive, in the order of arrival.
        """
        run = self._runs.pop(run_id, None)
        if run is None:
            # None of its tasks was taken; they are on their way.
            if run_id not in self._ended:
                self._remember(run_id, reason)
            return []
        self._remember(run_id, reason)
        alive = [task for task in run.tasks.values() if task.alive]
        for task in alive:
            task.move(TaskState.ABORTED)
            del self._by_rid[task.rid]
        return alive

    def _note(self, task: Task, run: _Run) -> None:
        run.changed()
        self._changed.add(task.hint.run)

    def _forget_dormant(self) -> None:
        """Drop the oldest runs whose tasks have ended while others were never submitted."""
        if len(self._runs) - len(self._by_rid) < REMEMBERED_RUNS:
            return
        dormant = [run_id for run_id, run in self._runs.items() if not any(t.alive for t in run.tasks.values())]
        for run_id in dormant[: len(dormant) // 2]:
            del self._runs[run_id]
            self._remember(run_id, "its other tasks were never submitted")

    def _remember(self, run_id: str, reason: str) -> None:
        self._ended[run_id] = reason
        while len(self._ended) > REMEMBERED_RUNS:
            self._ended.popitem(last=False)
