"""Grape's driver and the growing prompts of its engine."""

from __future__ import annotations

from dataclasses import dataclass

from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from sglang_ext.bench.simulation.clients import Client, Slo
from sglang_ext.bench.simulation.engine import Engine
from sglang_ext.bench.simulation.estimates import Estimates
from sglang_ext.bench.simulation.request import Request, Run
from sglang_ext.bench.workload.job import Hole


@dataclass
class _Growing:
    """A held task. Args: at: the segment that is open. taken: tokens of its hole that are in the prompt."""

    request: Request
    at: int = 0
    taken: int = 0


class HeldClient(Client):
    """Grape's driver and its engine: all tasks are there from the start, and their prompts grow.

    Args:
        weight: the programs' edge weight: a prompt grows by so many tokens while its upstream writes.
        streams: whether it does; if not, only known text is prefilled before an output is complete.
    """

    def __init__(
        self,
        engine: Engine,
        slo: Slo,
        estimates: Estimates,
        weight: int = DEFAULT_EDGE_WEIGHT,
        streams: bool = True,
    ) -> None:
        super().__init__(engine, slo, estimates)
        self._weight = weight
        self._streams = streams
        self._growing: dict[tuple[str, str], _Growing] = {}

    def arrived(self, run: Run) -> None:
        for task in run.job.tasks:
            if not task.upstream:
                self.submit(run, task, self.prompt(run, task))
                continue
            request = self.request(run, task, task.name, task.output, ())
            request.weight = self._weight
            run.requests[task.name] = request
            self._growing[run.rid, task.name] = growing = _Growing(request)
            self._grow(growing)
            self.engine.submit(request)

    def token(self, request: Request, now_s: float) -> None:
        if self._streams and len(request.token_s) % self._weight == 0:
            self._readers(request)

    def ended(self, request: Request, now_s: float) -> None:
        self._done(request)
        self._readers(request)

    def _readers(self, request: Request) -> None:
        run = request.run
        for reader in run.job.readers[request.shape.name]:
            growing = self._growing.get((run.rid, reader))
            if growing is not None:
                self._grow(growing)

    def _grow(self, growing: _Growing) -> None:
        """Append what has become known; complete the prompt when nothing is missing."""
        request, run = growing.request, growing.request.run
        segments = request.shape.segments
        while growing.at < len(segments):
            segment = segments[growing.at]
            if isinstance(segment, Hole):
                ended = run.ended(segment.task)
                written = run.written(segment.task)
                if not ended:
                    written = written // self._weight * self._weight if self._streams else 0
                request.extend([(run.key(segment.task), written - growing.taken)])
                growing.taken = max(growing.taken, written)
                if not ended:
                    return
                growing.taken = 0
            else:
                request.extend([(segment.key, segment.tokens)])
            growing.at += 1
        request.complete_s = self.engine.now_s
        request.deadline_s = self.deadline(request)
        del self._growing[run.rid, request.shape.name]
