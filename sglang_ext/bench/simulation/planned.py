"""Steps as a policy plans them: the engine's state as a snapshot, the plan as a step."""

from __future__ import annotations

from sglang_ext.bench.simulation.batch import Batch, PiecePlan
from sglang_ext.bench.simulation.engine import Engine, SimulationError
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
        self._yield_to_decodes(engine)
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
        served = {piece.request.rid for piece in batch.pieces}
        for request in ready:
            request.waited = 0 if request.rid in served else request.waited + 1
        return batch

    def _yield_to_decodes(self, engine: Engine) -> None:
        """Early KV goes before a decode would have no room for its token."""
        while engine.cache.available < len(engine.running):
            order = self.policy.yields_first(self._held())
            if not order:
                raise SimulationError(
                    f"{len(engine.running)} decodes have no room in {engine.cache.capacity} tokens of KV"
                )
            engine.drop(self._waiting[order[0]])

    def _fill(self, engine: Engine, plan: Plan, batch: Batch) -> None:
        """Pieces in the plan's order, as far as KV and seats go.

        As in SGLang a complete prompt begins only where all that it may write has room too. One that holds KV already
        ends on the room that early KV would give back to its decodes.
        """
        chunk = engine.machine.chunk
        free = engine.cache.available - engine.reserved()
        room = engine.cache.available - len(batch.rows)
        seats = engine.machine.running - len(engine.running)
        for piece in plan.pieces:
            request = self._waiting[piece.rid]
            fresh, before = request.node is None, engine.cache.available
            engine.admit(request)
            # What it finds in the tree can no longer be evicted.
            locked = before - engine.cache.available
            tokens = min(piece.tokens, request.visible - request.computed, chunk)
            last = request.complete and request.computed + tokens == request.known
            needed = tokens + locked + (request.limit if last else 0)
            asked = request.known - request.computed + request.limit + locked if fresh and request.complete else needed
            fits = tokens + locked <= room and not (last and seats <= 0)
            if fits and asked > free and (engine.running or batch.pieces):
                fits = not fresh and last and needed <= free + self._yieldable(engine, request)
            if tokens <= 0 or not fits:
                self._short = self._short or (tokens > 0 and request.complete)
                if fresh:
                    engine.drop(request)
                continue
            batch.pieces.append(PiecePlan(request, request.computed, tokens, last))
            chunk, free, room = chunk - tokens, free - needed, room - tokens - locked
            if last:
                seats -= 1
                del self._waiting[request.rid]

    def _yieldable(self, engine: Engine, besides: Request) -> int:
        """KV that the other waiting prompts would give back."""
        others = (r for r in self._waiting.values() if r.node is not None and r is not besides)
        return sum(r.private + engine.cache.alone(r.node) for r in others if r.node is not None)

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
        holding = self._held()
        return Snapshot(
            now_s=engine.now_s,
            ready=tuple(self._prefill(request) for request in ready),
            decodes=tuple(
                Decode(r.rid, r.run.rid, r.context, r.token_s[-1] if r.token_s else None, r.tbt_s)
                for r in engine.running
            ),
            holding=holding,
            kv_free=engine.cache.available,
            rows_free=self._held_rows - sum(request.early for request in self._waiting.values()),
            seats_free=engine.machine.running - len(engine.running),
            chunk=engine.machine.chunk,
            short=self._short,
        )

    def _held(self) -> tuple[Holding, ...]:
        return tuple(self._holding(request) for request in self._waiting.values() if request.node is not None)

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
            weight=request.weight,
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
