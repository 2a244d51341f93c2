"""The prefill adder: forms the prefill part of a step, pieces of growing prompts included."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from sglang.srt.managers.schedule_policy import AddReqResult, PrefillAdder

from sglang_ext.engine.piecewise_request import Piece, PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.tasks.state import TaskState

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks


class TaskPrefillAdder(PrefillAdder):  # type: ignore[misc]
    """SGLang's adder, with prompts taken piece by piece, several side by side."""

    held: ClassVar[HeldTasks]
    rem_chunk_tokens: int | None
    new_chunked_req: Any

    def add_one_req(self, req: Any, has_chunked_req: bool, truncation_align_size: int | None) -> AddReqResult:
        if not self._row_is_free(req):
            return AddReqResult.CONTINUE
        if isinstance(req, PiecewiseRequest) and (req.in_pieces or self.held.planner.cuts(req)):
            return self._add_piece(req, truncation_align_size)
        result = super().add_one_req(req, has_chunked_req, truncation_align_size)
        if result == AddReqResult.NO_TOKEN and not self._took(req):
            self.held.planner.short = True
        return result

    def _add_piece(self, req: PiecewiseRequest, truncation_align_size: int | None) -> AddReqResult:
        room = self.rem_chunk_tokens
        visible = self.held.told.visible(req)
        # For a first piece SGLang has just matched the cache, which may hold all that is visible.
        if req.prefix_len >= visible:
            req.found_in_cache = visible
            self.held.told.changed(req)
            return AddReqResult.CONTINUE
        allowed = min(self.held.planner.allowance(req), visible - req.prefix_len)
        if room is not None:
            allowed = min(allowed, room)
        fixed = req.fixed_prefix // self.page_size * self.page_size - req.prefix_len
        if fixed > 0 and not req.prompt_complete:
            # The fixed text ends a piece, so that it is published for others as soon as it is computed.
            allowed = min(allowed, fixed)
        if req.kv.holds_kv:
            fitting = min(allowed, self._free(req))
            if fitting <= 0 < allowed:
                return self._finds_no_kv(req)
            allowed = fitting
        if allowed <= 0:
            return AddReqResult.CONTINUE
        limit = allowed
        if req.prefix_len + allowed == len(req.origin_input_ids) + len(req.output_ids):
            # SGLang counts a prompt that it takes to its end in whole pages, and takes none where that is too much.
            limit = self.ceil_paged_tokens(allowed) if room is None else min(room, self.ceil_paged_tokens(allowed))
        self.rem_chunk_tokens = limit
        result = AddReqResult.NO_TOKEN
        if req.kv.holds_kv:
            self._continue(req)
        else:
            result = super().add_one_req(req, False, truncation_align_size)
        used = limit - self.rem_chunk_tokens
        self.rem_chunk_tokens = None if room is None else room - used
        if self.new_chunked_req is req:
            # SGLang tracks one chunked request only; the extension's table tracks those in pieces.
            self.new_chunked_req = None
        if not self._took(req):
            # There is KV, but no piece of it fits into this step; those behind it are not to wait.
            return self._finds_no_kv(req) if result == AddReqResult.NO_TOKEN else AddReqResult.CONTINUE
        self._launch(req, visible)
        return self.budget_state()

    def _free(self, req: PiecewiseRequest) -> int:
        """Tokens for which a prompt that holds KV finds more.

        SGLang goes on with such a prompt whatever is free, since it has only one; that would end the process here. A
        plan has counted what the decodes need; without one theirs is left to them, as SGLang leaves it.
        """
        free = int(self.cur_rem_tokens if self.held.planner.planned else self.rem_total_tokens)
        page: int = self.page_size
        return max(0, free) // page * page + (-int(req.prefix_len)) % page

    def _finds_no_kv(self, req: PiecewiseRequest) -> AddReqResult:
        """A complete prompt asks the others for room, and none goes before it; an early one lets the others by."""
        if not req.prompt_complete:
            return AddReqResult.CONTINUE
        self.held.planner.short = True
        return AddReqResult.NO_TOKEN

    def _continue(self, req: PiecewiseRequest) -> None:
        """The next piece of a prompt that holds KV; whether it was taken at all shows in the list of those that run."""
        budget = self.memory_budget
        # What decodes may still write is the plan's to weigh.
        reserved = budget.total_offset - budget.current_offset if self.held.planner.planned else 0
        budget.total_offset -= reserved
        self.add_chunked_req(req)
        budget.total_offset += reserved

    def _row_is_free(self, req: Any) -> bool:
        """Whether there is a row for a request; where prompts in pieces go on SGLang counts those they hold as free."""
        if not self.held.planner.rows_offered or req.kv.holds_kv:
            return True
        fresh = sum(not each.kv.holds_kv for each in self.can_run_list)
        return bool(self.held.scheduler.req_to_token_pool.available_size() > fresh)

    def _took(self, req: Any) -> bool:
        return bool(self.can_run_list) and self.can_run_list[-1] is req

    def _launch(self, req: PiecewiseRequest, visible: int) -> None:
        """Record the piece, and mark it as a middle one or the last."""
        held = self.held
        start, end = req.prefix_len, req.extend_end
        streamed = req.task.streamed_within(start, end) if isinstance(req, TaskRequest) and req.has_task else 0
        req.pieces.append(Piece(held.step, start, end, streamed, time.monotonic()))
        req.piece_s = held.now_s
        req.waits_from = held.step + 1
        held.told.changed(req)
        last = req.prompt_complete and end == visible
        if last:
            # Final at launch, not when its result is in: the next step must not launch it again.
            if held.cut.pop(req.rid, None) is not None:
                req.cut = False
            elif isinstance(req, TaskRequest) and req.growing:
                held.enter(req)
        else:
            req.inflight_middle_chunks += 1
            req.middle_in_flight = True
            if not isinstance(req, TaskRequest) or not req.growing:
                req.cut = True
                held.cut[req.rid] = req
            elif req.task.state is TaskState.HELD:
                req.task.move(TaskState.PREFILLING)
        held.log.piece(req, last)
