"""One step's plan: what the policy is told, and how SGLang's queue is made to say what it answers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sglang.srt.utils.rank_consensus_checker import rank_consensus

from sglang_ext.engine import early_kv
from sglang_ext.engine.piecewise_request import Piece, PiecewiseRequest
from sglang_ext.engine.step_meter import StepMeter, load_of
from sglang_ext.engine.step_snapshot import SnapshotMaker
from sglang_ext.policy.cost_model import Load
from sglang_ext.policy.policy import Policy
from sglang_ext.policy.preemption import oldest_complete
from sglang_ext.policy.snapshot import Plan, Snapshot
from sglang_ext.policy.step_times import StepTimes
from sglang_ext.policy.stock import StockPolicy

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks

# Bounded by SGLang's own chunk size alone.
UNBOUNDED = 1 << 30
_NOTHING = Plan()


class StepPlanner:
    """Asks the policy, and puts what it picks into SGLang's queue for the length of a step.

    A plan of None leaves the step to SGLang's own order: complete prompts of tasks go in front of its
    queue then, early pieces behind it.
    """

    def __init__(self, held: HeldTasks, policy: Policy, times: StepTimes) -> None:
        self.held = held
        self.scheduler = held.scheduler
        self.policy = policy
        self.times = times
        # On a CPU the forward runs where it is launched.
        overlaps = self.scheduler.enable_overlap and self.scheduler.device != "cpu"
        self.meter = StepMeter(times, 1 if overlaps else 0)
        self.snapshots = SnapshotMaker(held)
        # A request that is not early work found no room for its KV.
        self.short = False
        # Whether the plan at hand says how much of each prompt is prefilled.
        self.planned = False
        # Prompts in SGLang's queue for this step that hold a row already.
        self.rows_offered = 0
        self._allowances: dict[str, int] = {}
        self._queue: list[Any] = []
        self._offered: set[int] = set()
        self._beside_decodes = False
        self._ran_alone = False

    def step_s(self) -> float:
        """Seconds of the unloaded decode step, as expected now."""
        return self.times.time(Load(rows=1))

    def cuts(self, req: PiecewiseRequest) -> bool:
        """Whether a plan says how much of a prompt this step prefills."""
        return self.planned and not _whole(req)

    def take_over_chunked(self, last_batch: Any) -> None:
        """While tasks are present, the prompt that SGLang is cutting becomes one among those in pieces."""
        scheduler = self.scheduler
        req = scheduler.chunked_req
        if req is None or not self.held.requests or isinstance(self.policy, StockPolicy):
            return
        if not isinstance(req, PiecewiseRequest) or _whole(req) or scheduler._pending_chunked_abort_req is req:
            return
        scheduler.chunked_req = None
        req.cut = True
        self.held.cut[req.rid] = req
        self.held.told.changed(req)
        req.middle_in_flight = last_batch is not None and last_batch.chunked_req is req
        if req.middle_in_flight:
            req.pieces.append(Piece(self.held.step, req.prefix_len, req.extend_end, 0, time.monotonic()))

    def begin(self, running_batch: Any, last_batch: Any) -> None:
        """Before SGLang forms its batch: its queue holds what the plan names, in the plan's order."""
        self.meter.tick(self.held.now_s if self.held.ticked else None)
        self.held.objectives.step_s = self.step_s()
        queue = self.scheduler.waiting_queue
        snapshot = self.snapshots.make(running_batch, last_batch, self.short)
        plan = _NOTHING if snapshot is None else self._decide(snapshot)
        for rid in plan.give_up if plan is not None else self._yields():
            self.give_up(rid)
        if self.short or plan is not None:
            running_batch.batch_is_full = False
        self.short = False
        ready, decodes = (snapshot.ready, snapshot.decodes) if snapshot is not None else ((), ())
        if plan is not None and ready and not (plan.pieces or plan.give_up):
            self.snapshots.pass_over(ready)
        self._beside_decodes = bool(decodes)
        self._queue = list(queue)
        self.planned = plan is not None
        if plan is None:
            pieces = [req for each in ready if (req := self._in_pieces(each.rid)) is not None]
            queue[:] = [*_complete(pieces, True), *queue, *_complete(pieces, False)]
            self.rows_offered = _rows(pieces)
            return
        self._allowances = {piece.rid: piece.tokens for piece in plan.pieces}
        # Where prefill cannot share a step with the decodes, they take turns.
        waits = self._ran_alone and self._beside_decodes
        offered = [] if waits else self._requests([p.rid for p in plan.pieces if p.rid not in plan.give_up])
        # What SGLang's queue has beside our requests is not planned, and goes first.
        queue[:] = [*(req for req in queue if not isinstance(req, PiecewiseRequest)), *offered]
        self._offered = set(map(id, queue))
        self.rows_offered = _rows(offered)

    @rank_consensus(same_params=["snapshot"], same_results=True)  # type: ignore[untyped-decorator]
    def _decide(self, snapshot: Snapshot) -> Plan | None:
        """The plan; with SGLang's checker on, an engine whose ranks are told or decide different things ends."""
        return self.policy.plan(snapshot)

    def end(self, batch: Any) -> None:
        """Back to SGLang's queue as it was, without what was launched in `batch`."""
        self.meter.launch(load_of(batch))
        prefills = batch is not None and batch.forward_mode.is_extend()
        self._ran_alone = bool(self.planned and self._beside_decodes and prefills and not batch.decoding_reqs)
        queue = self.scheduler.waiting_queue
        if self.planned:
            gone = self._offered.difference(map(id, queue))
            known = set(map(id, self._queue))
            kept = [req for req in self._queue if id(req) not in gone]
            # Retracted requests, and those whose grammar is ready now, have come in this step.
            come = [req for req in queue if id(req) not in known and not self.held.holds(req)]
            self.scheduler.waiting_queue = [*kept, *come]
        else:
            self.scheduler.waiting_queue = [req for req in queue if not self.held.holds(req)]
        self._queue, self._allowances, self.planned, self.rows_offered = [], {}, False, 0

    def allowance(self, req: PiecewiseRequest) -> int:
        """Tokens of a prompt that this step may prefill."""
        return self._allowances.get(req.rid, 0) if self.planned else UNBOUNDED

    def give_up(self, rid: str) -> None:
        """A request gives back the KV that it holds before it runs."""
        req = self._in_pieces(rid)
        assert req is not None
        early_kv.give_up(self.scheduler, req)

    def yield_kv(self) -> bool:
        """Give back the KV of the request that yields first; returns whether there was one."""
        for rid in self.policy.yields_first(self.held.told.holding()):
            self.give_up(rid)
            return True
        return False

    def _in_pieces(self, rid: str) -> PiecewiseRequest | None:
        return self.held.growing.get(rid) or self.held.cut.get(rid)

    def _requests(self, rids: list[str]) -> list[PiecewiseRequest]:
        """The requests of these ids, from the extension's table or SGLang's queue."""
        found = {rid: self._in_pieces(rid) for rid in rids}
        if None in found.values():
            found.update((req.rid, req) for req in self._queue if req.rid in found and found[req.rid] is None)
        return [req for req in found.values() if req is not None]

    def _yields(self) -> Iterable[str]:
        """Without a plan one task yields to a prompt without room; the oldest complete one never does."""
        holding = self.held.told.holding()
        stays = oldest_complete(holding)
        others = [rid for rid in self.policy.yields_first(holding) if rid != stays]
        return others[:1] if self.short else ()


def _whole(req: PiecewiseRequest) -> bool:
    """Whether SGLang alone may cut it: logprobs of a prompt need the token behind each piece."""
    return bool(req.return_logprob and 0 <= req.logprob_start_len < len(req.origin_input_ids))


def _rows(requests: Iterable[PiecewiseRequest]) -> int:
    return sum(req.kv.holds_kv for req in requests)


def _complete(requests: list[PiecewiseRequest], complete: bool) -> list[PiecewiseRequest]:
    return [req for req in requests if req.prompt_complete is complete]
