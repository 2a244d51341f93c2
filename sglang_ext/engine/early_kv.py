"""KV of prompts that do not run yet: taken over piece by piece, given back, given up."""

from __future__ import annotations

import time
from typing import Any

from sglang.srt.disaggregation.utils import prepare_abort
from sglang.srt.managers.io_struct import AbortReq
from sglang.srt.mem_cache.common import checkpoint_kv_cache, release_kv_cache

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.tasks.state import TaskState


def absorb(scheduler: Any, last_batch: Any) -> None:
    """Take the middle pieces out of the batch launched last, before SGLang would decode them.

    The fixed prefix is published to the radix tree as soon as it is computed, for siblings and the
    next run; streamed pieces only advance, which is cheaper, and are published with the last one.
    """
    if last_batch is None or not last_batch.forward_mode.is_extend():
        return
    middle = [req for req in last_batch.reqs if isinstance(req, PiecewiseRequest) and req.middle_in_flight]
    if not middle:
        return
    for req in middle:
        req.middle_in_flight = False
        scheduler.held.told.changed(req)
        if req.withdrawn or not req.kv.holds_kv:
            continue
        req.pieces[-1].done_s = time.monotonic()
        if req.extend_end <= req.fixed_prefix:
            checkpoint_kv_cache(req, scheduler.tree_cache)
        else:
            req.prefix_len = req.extend_end
    last_batch.filter_batch(reqs_to_exclude=middle)


def give_up(scheduler: Any, req: PiecewiseRequest) -> None:
    """Give back the KV of a request that does not run yet; it stays in the tree while there is room.

    It is prefilled again later: a task from the extension's table, any other from SGLang's queue.
    """
    held = scheduler.held
    release_kv_cache(req, scheduler.tree_cache, checkpoint=True)
    req.reset_for_retract()
    # The user's request was never retracted, only early work was.
    req.retraction_count -= 1
    req.pieces = [piece for piece in req.pieces if piece.streamed == 0]
    req.found_in_cache = None
    held.told.changed(req)
    # With overlap the result of its last piece comes in this step; a new one must not be in flight then.
    req.rests_until = held.step + 1
    if held.cut.pop(req.rid, None) is not None:
        req.cut = False
        # It may be there already, for a piece in this step.
        if req not in scheduler.waiting_queue:
            scheduler.waiting_queue.insert(0, req)
    elif isinstance(req, TaskRequest):
        held.pending[req.rid] = req
        if req.task.state is TaskState.PREFILLING:
            req.task.move(TaskState.HELD)
    held.log.state(req, "gave up its KV")


def withdraw(scheduler: Any, req: PiecewiseRequest, message: str, status: int | None) -> None:
    """End a request in pieces: its KV, row and lock go back, and its client is told once.

    A piece may still be in flight; its result finds the request finished and is dropped.
    """
    req.withdrawn = True
    if req in scheduler.waiting_queue:
        scheduler.waiting_queue.remove(req)
    prepare_abort(req, message, status)
    reason = req.finished_reason.to_json()
    scheduler._release_aborted_request(req)
    if req.kv.holds_kv:
        release_kv_cache(req, scheduler.tree_cache, checkpoint=False)
    scheduler.send_abort_output(AbortReq(rid=req.rid, finished_reason=reason), req)
