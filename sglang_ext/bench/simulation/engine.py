"""The loop of one engine, step by step, in simulated time."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import Protocol

from sglang_ext.bench.recorded_step import RecordedStep
from sglang_ext.bench.simulation.batch import Batch, PiecePlan
from sglang_ext.bench.simulation.machine import Machine, Overlap
from sglang_ext.bench.simulation.prefix_cache import PrefixCache
from sglang_ext.bench.simulation.request import Request
from sglang_ext.policy.cost_model import Load

# What a step without work waits while requests are open, and how many such steps in a row may form nothing.
IDLE_S = 0.001
MOST_IDLE = 100


class SimulationError(RuntimeError):
    """The simulated engine stands still with work left, or holds what it should not."""


class Former(Protocol):
    """Who forms the steps."""

    def arrive(self, request: Request) -> None:
        """A request has reached the engine."""

    def form(self, engine: Engine) -> Batch:
        """The next step; an empty one if there is nothing to do. Prefixes of new requests are locked here."""


class Listener(Protocol):
    """Who hears of tokens: the client of the run."""

    def token(self, request: Request, now_s: float) -> None:
        """One more token of a request was delivered."""

    def ended(self, request: Request, now_s: float) -> None:
        """A request is done; its last token was told before."""


class Engine:
    """Args: listener: hears of tokens; set before `run`.

    Attributes:
        running: requests that decode, in the order in which they began.
        steps: a record of every step.
        computed: tokens of prefill in all; with `PrefixCache` evictions and give-ups some more than once.
        high_water: the most KV that was held.
    """

    listener: Listener

    def __init__(self, machine: Machine, former: Former) -> None:
        self.machine = machine
        self.former = former
        self.cache = PrefixCache(machine.kv_tokens)
        self.running: list[Request] = []
        self.now_s = 0.0
        self.steps: list[RecordedStep] = []
        self.computed = 0
        self.high_water = 0
        self.open = 0
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()
        self._orders = count()
        self._busy_s = 0.0
        self._idle = 0
        # Of the steps' scatter; the same draws in each engine.
        self._random = random.Random(0)

    def at(self, time_s: float, what: Callable[[], object]) -> None:
        """Call `what` when the loop looks for new requests at `time_s` or later."""
        heapq.heappush(self._events, (time_s, next(self._numbers), what))

    def order(self) -> int:
        """The next number of arrival."""
        return next(self._orders)

    def submit(self, request: Request) -> None:
        """A request reaches the engine now."""
        self.open += 1
        self.former.arrive(request)

    def run(self) -> None:
        """Until nothing is left to do. Raises SimulationError if it stands still before."""
        last: Batch | None = None
        while True:
            while self._events and self._events[0][0] <= self.now_s:
                heapq.heappop(self._events)[2]()
            batch = self.former.form(self)
            launched = bool(batch.rows or batch.pieces)
            if launched:
                self._launch(batch)
            if self.machine.overlap is Overlap.NONE:
                last = batch if launched else None
            elif launched and self.machine.overlap is Overlap.HOST:
                self.now_s = batch.end_s
            if last is not None:
                self.now_s = max(self.now_s, last.end_s)
                self._deliver(last)
            elif not launched and not self._rest():
                break
            self._idle = 0 if launched else self._idle + 1
            last = batch if launched and self.machine.overlap is not Overlap.NONE else None
        if self.open:
            raise SimulationError(f"{self.open} requests are left at {self.now_s:.3f} s, and no step is formed")

    def _rest(self) -> bool:
        """Wait for what comes next; False if nothing does. As in the engine a step without work waits a little."""
        if self.open and self._idle < MOST_IDLE:
            soon = self.now_s + IDLE_S
            self.now_s = min(soon, max(self.now_s, self._events[0][0])) if self._events else soon
            return True
        if self._events:
            self.now_s = max(self.now_s, self._events[0][0])
        return bool(self._events)

    def reserved(self) -> int:
        """Tokens of KV kept for all that the running requests may still write, and for a step beyond their end."""
        return sum(max(0, request.limit - request.launched) + 1 for request in self.running)

    def drop(self, request: Request) -> None:
        """Take a waiting request's KV; what the tree has of it stays there while there is room."""
        if request.node is None:
            return
        node = self.cache.publish(request.spans, request.computed, request.node, request.private)
        self.cache.unlock(node)
        request.node, request.computed, request.private, request.early = None, 0, 0, False

    def admit(self, request: Request) -> None:
        """Lock what the cache has of a request's prompt, if it holds nothing yet."""
        if request.node is None:
            most = request.known - 1 if request.complete else request.visible
            request.computed, request.node = self.cache.match(request.spans, most)
            self.cache.lock(request.node)
            request.early = not request.complete

    def _launch(self, batch: Batch) -> None:
        batch.start_s = max(self.now_s, self._busy_s)
        batch.end_s = self._busy_s = batch.start_s + self._time(batch.weigh())
        load = batch.load
        left_out = len(self.running) - len(batch.rows)
        self.steps.append(
            RecordedStep(
                batch.start_s, batch.end_s, load.rows, load.tokens, load.kv, load.attention, left_out, load.pieces
            )
        )
        for row in batch.rows:
            row.launched += 1
            row.written += 1
        self._take(len(batch.rows))
        for piece in batch.pieces:
            self._launch_piece(piece, batch.start_s)
        self.computed += load.tokens
        self.high_water = max(self.high_water, self.cache.used)

    def _time(self, load: Load) -> float:
        drawn = self.machine.scatter.get(load.regime)
        return self.machine.cost.time(load) * (self._random.choice(drawn) if drawn else 1.0)

    def _take(self, tokens: int) -> None:
        cache = self.cache
        if tokens > cache.available:
            raise SimulationError(
                f"a step needs {tokens} tokens of KV where {cache.available} of {cache.capacity} are left"
            )
        cache.take(tokens)

    def _launch_piece(self, piece: PiecePlan, start_s: float) -> None:
        request = piece.request
        self._take(piece.tokens)
        request.computed += piece.tokens
        request.private += piece.tokens
        request.used_s = start_s
        if piece.last and request.output:
            request.launched = 1
            self.running.append(request)

    def _deliver(self, batch: Batch) -> None:
        for piece in batch.pieces:
            request = piece.request
            if request.node is None or request.finished:
                continue
            if piece.last or request.complete or request.computed <= request.fixed:
                request.node = self.cache.publish(request.spans, request.computed, request.node, request.private)
                request.private = 0
            if piece.last:
                self._advance(request)
        for row in batch.rows:
            if not row.finished:
                self._advance(row)

    def _advance(self, request: Request) -> None:
        """A result for a request: a token, or the end of one that only fills the cache."""
        if request.output:
            request.token_s.append(self.now_s)
            if request.run.token_s is None:
                request.run.token_s = self.now_s
            self.listener.token(request, self.now_s)
        if len(request.token_s) == request.output:
            self._end(request)
            self.listener.ended(request, self.now_s)

    def _end(self, request: Request) -> None:
        request.finished = True
        self.open -= 1
        if request.output:
            self.running.remove(request)
        assert request.node is not None
        self.cache.unlock(request.node)
        self.cache.private -= request.written + request.private
        request.node = None
