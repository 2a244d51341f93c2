"""Who submits a run's tasks, and the plain client, which does so when their inputs are complete."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sglang_ext.bench.simulation.engine import Engine
from sglang_ext.bench.simulation.estimates import Estimates
from sglang_ext.bench.simulation.prefix_cache import Span
from sglang_ext.bench.simulation.request import Request, Run
from sglang_ext.bench.workload.job import Hole, Job, TaskShape

# Places in a queue with priorities.
NEXT_TASK, NEW_RUN, PREWARM = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Slo:
    """Seconds. Args: ttft_s: from a run's arrival to its first token. tbt_s: between two tokens of a run."""

    ttft_s: float
    tbt_s: float


class Client:
    """Submits each task when its inputs are complete: the plain client.

    Args:
        estimates: learns the lengths of outputs.
    """

    def __init__(self, engine: Engine, slo: Slo, estimates: Estimates) -> None:
        self.engine = engine
        self.slo = slo
        self.estimates = estimates
        self.runs: list[Run] = []
        self._queued: deque[Run] = deque()
        engine.listener = self

    def start(self, jobs: Sequence[Job], in_flight: int | None = None) -> None:
        """Let the jobs come at their times, or so many at once, the next one when one ends."""
        self.runs = [Run(f"run{job.index}", job, job.arrival_s) for job in jobs]
        if in_flight is None:
            for run in self.runs:
                self.engine.at(run.submitted_s, partial(self.arrived, run))
            return
        self._queued = deque(self.runs)
        for _ in range(min(in_flight, len(jobs))):
            self._next()

    def arrived(self, run: Run) -> None:
        """A run begins: its tasks without upstreams."""
        for task in run.job.tasks:
            if not task.upstream:
                self.submit(run, task, self.prompt(run, task))

    def token(self, request: Request, now_s: float) -> None:
        """A task that waits for nothing else needs no token before the last."""

    def ended(self, request: Request, now_s: float) -> None:
        run = request.run
        self._done(request)
        for reader in run.job.readers[request.shape.name]:
            task = run.job.by_name[reader]
            if all(run.ended(up) for up in task.upstream):
                self.later(partial(self.submit, run, task, self.prompt(run, task)))

    def _done(self, request: Request) -> None:
        self.estimates.learn(request.run, request.shape.name)
        if request.run.over:
            self._next()

    def _next(self) -> None:
        if self._queued:
            run = self._queued.popleft()
            run.submitted_s = self.engine.now_s
            self.later(partial(self.arrived, run))

    def later(self, what: Callable[[], object]) -> None:
        """What a client sends because of something that it hears now."""
        self.engine.at(self.engine.now_s + self.engine.machine.client_s, what)

    def submit(self, run: Run, task: TaskShape, spans: Sequence[Span]) -> Request:
        """Send a task with its complete prompt."""
        request = self.request(run, task, task.name, task.output, spans)
        request.complete_s = self.engine.now_s
        request.urgency = NEXT_TASK if task.upstream else NEW_RUN
        request.deadline_s = self.deadline(request)
        run.requests[task.name] = request
        self.engine.submit(request)
        return request

    def deadline(self, request: Request) -> float:
        """When the first token is due: of a run by its TTFT, of a later task by the gap that it ends."""
        if not request.shape.upstream:
            return request.run.submitted_s + self.slo.ttft_s
        ups = [request.run.requests[up].token_s[-1] for up in request.shape.upstream]
        return max(ups) + self.slo.tbt_s

    def prompt(self, run: Run, task: TaskShape) -> list[Span]:
        """The complete prompt of a task whose upstreams have ended."""
        return list(known_spans(run, task))

    def request(self, run: Run, task: TaskShape, name: str, output: int, spans: Sequence[Span]) -> Request:
        request = Request(
            rid=f"{run.rid}.{name}",
            run=run,
            shape=task,
            order=self.engine.order(),
            output=output,
            limit=(output if run.job.forced else task.limit) if output else 0,
            arrived_s=self.engine.now_s,
            fixed=task.known_prefix,
            tbt_s=self.slo.tbt_s,
        )
        request.extend(spans)
        return request


def known_spans(run: Run, task: TaskShape, every: int = 1) -> Iterator[Span]:
    """The prompt up to the first output that is not complete, of which whole multiples of `every` tokens are given."""
    for segment in task.segments:
        if not isinstance(segment, Hole):
            yield segment.key, segment.tokens
            continue
        written = run.written(segment.task)
        if not run.ended(segment.task):
            yield run.key(segment.task), written // every * every
            return
        yield run.key(segment.task), written
