"""Steps as a policy plans them: the engine's state as a snapshot, the plan as a step."""

from __future__ import annotations

from sglang_ext.bench.simulation.batch import Batch, PiecePlan
from sglang_ext.bench.simulation.engine import Engine
from sglang_ext.bench.simulation.estimates import Ahead, Estimates
from sglang_ext.bench.simulation.request import Request
from sglang_ext.policy.policy import Policy
from sglang_ext.policy.snapshot import Decode, Holding, Plan, Prefill, Snapshot


class PlannedFormer:
    """Args:
    policy: the very object that the engine asks.
    held_rows: tasks that may hold KV before they run.
    """

    def __init__(self, policy: Policy, estimates: Estimates, held_rows: int = 64) -> None:
        self.policy = policy
        self._estimates = estimates
        self._held_rows = held_rows
        self._waiting: dict[str, Request] = {}
        self._short = False
        self._known: dict[str, dict[str, Ahead]] = {}

    def arrive(self, request: Request) -> None:
        self._waiting[request.rid] = request

    def form(self, engine: Engine) -> Batch:
        """Ask the policy and take what there is room for."""
        batch = Batch(rows=list(engine.running))
        if not self._waiting:
            return batch
        self._known.clear()
        ready = self._ready(engine)
        if not ready:
            return batch
        plan = self.policy.plan(self._snapshot(engine, ready))
        if plan is None:
            raise ValueError(f"the policy {self.policy.name!r} leaves the step to SGLang; simulate a stock arm instead")
        for rid in plan.give_up:
            engine.drop(self._waiting[rid])
        self._short = False
        self._fill(engine, plan, batch)
        if plan.alone and batch.pieces:
            batch.rows = []
        served = {piece.request.rid for piece in batch.pieces}
        for request in ready:
            request.waited = 0 if request.rid in served else request.waited + 1
        return batch

    def _fill(self, engine: Engine, plan: Plan, batch: Batch) -> None:
        """Pieces in the plan's order, as far as KV and seats go; SGLang keeps room for all that a request may write."""
        chunk = engine.machine.chunk
        free = engine.cache.available - len(batch.rows) - sum(max(0, r.limit - r.launched) for r in engine.running)
        seats = engine.machine.running - len(engine.running)
        for piece in plan.pieces:
            request = self._waiting[piece.rid]
            before = engine.cache.available
            engine.admit(request)
            free -= before - engine.cache.available
            tokens = min(piece.tokens, request.visible - request.computed, chunk)
            if tokens <= 0:
                continue
            last = request.complete and request.computed + tokens == request.known
            needed = tokens + (request.limit if last else 0)
            alone = not engine.running and not batch.pieces
            if (needed > free and not alone) or tokens > engine.cache.available or (last and seats <= 0):
                self._short = self._short or request.complete
                continue
            batch.pieces.append(PiecePlan(request, request.computed, tokens, last))
            chunk, free = chunk - tokens, free - needed
            if last:
                seats -= 1
                del self._waiting[request.rid]

    def _ready(self, engine: Engine) -> list[Request]:
        ready = []
        for request in self._waiting.values():
            if request.node is None:
                most = request.known - 1 if request.complete else request.visible
                request.found = engine.cache.match(request.spans, most)[0]
            else:
                request.found = request.computed
            if request.visible > request.found:
                ready.append(request)
        return ready

    def _snapshot(self, engine: Engine, ready: list[Request]) -> Snapshot:
        holding = tuple(self._holding(request) for request in self._waiting.values() if request.node is not None)
        return Snapshot(
            now_s=engine.now_s,
            ready=tuple(self._prefill(request) for request in ready),
            decodes=tuple(
                Decode(r.rid, r.run.rid, r.context, r.token_s[-1] if r.token_s else None, r.tbt_s)
                for r in engine.running
            ),
            holding=holding,
            kv_free=engine.cache.available,
            rows_free=max(0, self._held_rows - len(holding)),
            seats_free=engine.machine.running - len(engine.running),
            chunk=engine.machine.chunk,
            short=self._short,
        )

    def _prefill(self, request: Request) -> Prefill:
        run = request.run
        if request.complete_s is not None:
            return Prefill(
                rid=request.rid,
                run=run.rid,
                order=request.order,
                pending=request.visible - request.found,
                context=request.found,
                has_row=request.node is not None,
                complete=True,
                stalled=run.token_s is not None,
                since_s=request.complete_s,
                deadline_s=request.deadline_s,
                waited=request.waited,
            )
        ahead = self._ahead(request)
        return Prefill(
            rid=request.rid,
            run=run.rid,
            order=request.order,
            pending=request.visible - request.found,
            context=request.found,
            has_row=request.node is not None,
            hops=ahead.hops,
            to_come=self._estimates.to_come(request),
            rest_steps=ahead.steps,
            since_s=request.arrived_s,
            waited=request.waited,
        )

    def _holding(self, request: Request) -> Holding:
        ahead = self._ahead(request)
        return Holding(
            rid=request.rid,
            tokens=request.computed,
            order=request.order,
            complete=request.complete,
            hops=ahead.hops,
            rest_steps=ahead.steps,
            used_s=request.used_s,
        )

    def _ahead(self, request: Request) -> Ahead:
        """Computed once for a run and step."""
        found = self._known.get(request.run.rid)
        if found is None:
            found = self._known[request.run.rid] = self._estimates.ahead(request.run)
        return found[request.shape.name]
