"""A client of stock that does by itself what can be done without a change of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sglang_ext.bench.simulation.clients import PREWARM, Client, Slo, known_spans
from sglang_ext.bench.simulation.engine import Engine
from sglang_ext.bench.simulation.estimates import Estimates
from sglang_ext.bench.simulation.prefix_cache import Span
from sglang_ext.bench.simulation.request import Request, Run
from sglang_ext.bench.workload.job import TaskShape


@dataclass(slots=True)
class _Warm:
    """What was sent of a prompt that is not complete. Args: sent: its known tokens. busy: one is under way."""

    task: TaskShape
    sent: int = 0
    busy: bool = False
    count: int = 0


class PrewarmClient(Client):
    """The plain client, which also fills the prefix cache while the upstream writes.

    Once a task's upstreams have all begun it sends the task's known prefix, then the longer one after each further
    `every` tokens, as requests for no output, one under way at a time.
    """

    def __init__(self, engine: Engine, slo: Slo, estimates: Estimates, every: int = 16) -> None:
        super().__init__(engine, slo, estimates)
        self._every = every
        self._warm: dict[tuple[str, str], _Warm] = {}

    def token(self, request: Request, now_s: float) -> None:
        run = request.run
        if len(request.token_s) == request.output:
            return  # the last token comes with the news that it is the last
        for reader in run.job.readers[request.shape.name]:
            task = run.job.by_name[reader]
            if all(run.written(up) for up in task.upstream):
                self._send(run, self._warm.setdefault((run.rid, reader), _Warm(task)))

    def ended(self, request: Request, now_s: float) -> None:
        if request.output:
            super().ended(request, now_s)
            return
        warm = self._warm[request.run.rid, request.shape.name]
        warm.busy = False
        self._send(request.run, warm)

    def _send(self, run: Run, warm: _Warm) -> None:
        if warm.busy or all(run.ended(up) for up in warm.task.upstream):
            return
        spans = list(known_spans(run, warm.task, self._every))
        known = sum(tokens for _, tokens in spans)
        if known <= warm.sent:
            return
        warm.sent, warm.busy, warm.count = known, True, warm.count + 1
        self.later(partial(self._fill, run, warm.task, spans, warm.count))

    def _fill(self, run: Run, task: TaskShape, spans: list[Span], number: int) -> None:
        request = self.request(run, task, f"{task.name}.warm{number}", 0, spans)
        request.complete_s = self.engine.now_s
        request.urgency = PREWARM
        self.engine.submit(request)
