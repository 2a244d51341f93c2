"""What the policy is told of a step: SGLang's requests and the extension's, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.policy.snapshot import Decode, Prefill, Snapshot

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks


class SnapshotMaker:
    """Makes a step's snapshot; equal on all ranks, as are the requests and the lead rank's clock."""

    def __init__(self, held: HeldTasks) -> None:
        self.held = held
        self.scheduler = held.scheduler
        self._passed_over: tuple[Prefill, ...] = ()

    def make(self, running_batch: Any, last_batch: Any, short: bool) -> Snapshot | None:
        """The snapshot of the step that is about to be formed; None where there is nothing to decide.

        That is so where nothing can be prefilled, or what was passed over, and the KV would be enough for a whole
        chunk.

        Args:
            short: something found no room in the step before.
        """
        scheduler, told = self.scheduler, self.held.told
        ready = told.ready(scheduler.waiting_queue)
        chunk = scheduler.chunked_prefill_size or scheduler.max_prefill_tokens
        kv_free = scheduler.token_to_kv_pool_allocator.available_size() + scheduler.tree_cache.evictable_size()
        # What is told is the very same tuple as long as nothing happened to any of these prompts.
        idle = not short and (not ready or ready is self._passed_over)
        if idle and kv_free >= chunk + scheduler.max_running_requests * scheduler.page_size:
            return None
        decodes = self._decodes(running_batch, last_batch)
        return Snapshot(
            now_s=self.held.now_s,
            ready=ready,
            decodes=decodes,
            holding=told.holding(),
            kv_free=kv_free,
            rows_free=self.held.settings.max_held_rows - told.rows,
            seats_free=scheduler.max_running_requests - len(decodes),
            chunk=max(0, chunk - len(decodes)) if scheduler.is_mixed_chunk else chunk,
            page=scheduler.page_size,
            short=short,
        )

    def pass_over(self, ready: tuple[Prefill, ...]) -> None:
        """A plan takes nothing of these: if each is too little for a piece, none is asked for before more is known."""
        if all(not prefill.complete and prefill.pending < prefill.weight for prefill in ready):
            self._passed_over = ready

    def _decodes(self, running_batch: Any, last_batch: Any) -> tuple[Decode, ...]:
        """Rows that decode next: after a prefill or a mixed step SGLang merges the last batch in later."""
        rows = running_batch.reqs
        if last_batch is not None and last_batch.forward_mode.is_extend():
            chunked = self.scheduler.chunked_req
            rows = dict.fromkeys((*rows, *(req for req in last_batch.reqs if req is not chunked)))
        held, decodes = self.held, []
        now_s = held.now_s if held.ticked else None
        objectives = held.objectives
        _, usual_s = objectives.usual
        for req in rows:
            if req.finished_reason is not None:
                continue
            context = req.kv.kv_committed_len
            if not isinstance(req, PiecewiseRequest):
                decodes.append(Decode(req.rid, req.rid, context))
                continue
            # A task's outputs were seen where they were taken in.
            if now_s is not None and not isinstance(req, TaskRequest):
                req.see(now_s)
            tbt_s = usual_s if req.slo is None else objectives.of(req)[1]
            decodes.append(Decode(req.rid, req.run_id, context, req.token_s, tbt_s))
        return tuple(decodes)
