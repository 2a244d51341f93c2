"""Arrival of a task: reading its hint, refusing what is not supported, holding it or passing it on."""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from sglang.srt.mem_cache.common import match_kv_cache

from sglang_ext.engine.completion import complete_prompt, room, too_long
from sglang_ext.engine.output_streams import stream_factory
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.tasks.hint import (
    ACTION_TYPE,
    HintError,
    Known,
    TaskHint,
    check_input_ids,
    read_hint,
    request_id,
)
from sglang_ext.tasks.state import TaskState
from sglang_ext.tasks.table import TaskRefused

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks


logger = logging.getLogger(__name__)


def carries_task(kv_hints: Any) -> bool:
    """Whether a request's envelope names a task."""
    return kv_hints is not None and any(action.action_type == ACTION_TYPE for action in kv_hints.actions)


def accept(held: HeldTasks, req: TaskRequest) -> bool:
    """Take a request that has just arrived.

    Whatever is wrong with it, known or not, ends this request and its run alone.

    Returns:
        True if it is dealt with, held or refused; False if it is to go SGLang's ordinary way.
    """
    req.arrived = True
    req.submitted_s = req.grown_s = time.monotonic()
    hint: TaskHint | None = None
    try:
        hint = read_hint([(a.action_type, a.action_version, a.payload) for a in req.kv_hints.actions])
        assert hint is not None
        return _take(held, req, hint)
    except HintError as error:
        _turn_away(held, req, hint, str(error), HTTPStatus.BAD_REQUEST)
    except TaskRefused as error:
        _turn_away(held, req, hint, str(error), error.status)
    except Exception as error:
        logger.exception("Taking the task with request id %s failed", req.rid)
        message = f"the engine failed to take it: {error!r}; its log says where"
        _turn_away(held, req, hint, message, HTTPStatus.INTERNAL_SERVER_ERROR)
    return True


def _take(held: HeldTasks, req: TaskRequest, hint: TaskHint) -> bool:
    """Enter a task into the table; returns whether it is held. Raises TaskRefused or HintError."""
    scheduler = held.scheduler
    if req.to_finish is not None or req.finished():
        reason = req.to_finish or req.finished_reason
        raise TaskRefused(str(reason.message), reason.status_code or HTTPStatus.BAD_REQUEST)
    _refuse_unsupported(req, hint)
    _refuse_unknown_ids(hint, scheduler.model_config.vocab_size)
    check_input_ids(req.origin_input_ids, hint.segments)
    task = held.table.add(hint, stream_factory(scheduler.tokenizer, req.sampling_params.stop_strs), req.ids_behind)
    if req.return_logprob and 0 <= req.logprob_start_len < len(req.origin_input_ids):
        req.asked_logprob_start = req.logprob_start_len
    req.adopt_prompt(task)
    held.requests[req.rid] = req
    held.table.grow(task)
    _note_cached(held, req)
    if problem := too_long(scheduler, req) or (complete_prompt(scheduler, req) if task.complete else None):
        raise TaskRefused(problem)
    if not task.complete:
        return _hold(held, req)
    req.complete_s = req.submitted_s
    task.move(TaskState.READY)
    held.enter(req)
    held.log.state(req)
    return False


def _turn_away(held: HeldTasks, req: TaskRequest, hint: TaskHint | None, message: str, status: int) -> None:
    """Answer a request that is not taken, at once: no queue of SGLang's ever has it. Its run ends in the next step."""
    if held.requests.get(req.rid) is req:
        held.forget(req)
    if req.to_finish is None and not req.finished():
        req.set_finish_with_abort(message, status, HTTPStatus(status).phrase)
    if hint is not None:
        held.fail_soon(hint.run, f"task {hint.task!r}: {message}", status)
    held.scheduler.retire_unadmitted_request(req)


def _hold(held: HeldTasks, req: TaskRequest) -> bool:
    scheduler = held.scheduler
    if len(held.growing) >= held.settings.max_held:
        message = f"{len(held.growing)} tasks wait in the engine, no more may (GRAPE_MAX_HELD); submit it later"
        raise TaskRefused(message, HTTPStatus.SERVICE_UNAVAILABLE)
    if not scheduler._set_or_validate_priority(req):
        return True  # Its client has been told, and send_abort_output has ended the run.
    req.time_stats.set_wait_queue_entry_time()
    req.arrival_processed_tokens = scheduler.processed_tokens_counter
    req.task.wake_after(room(scheduler, req) + 1)
    held.hold(req)
    held.log.state(req)
    return True


def _refuse_unsupported(req: TaskRequest, hint: TaskHint) -> None:
    """Refuse by name what a task's request may not ask for."""
    asks = {
        "n > 1": (req.sampling_params.n or 1) > 1,
        "a session": req.session is not None or req.session_id is not None,
        "stop_regex": bool(req.sampling_params.stop_regex_strs),
        "multimodal inputs": req.multimodal_inputs is not None,
        "input embeddings": req.input_embeds is not None or req.positional_embed_overrides is not None,
        "beam search": req.beam_group is not None,
        "a request id other than the task's own": req.rid != request_id(hint.run, hint.index),
    }
    refused = [name for name, asked in asks.items() if asked]
    if refused:
        raise TaskRefused(f"a task's request may not have {' or '.join(refused)}")


def _refuse_unknown_ids(hint: TaskHint, vocab_size: int) -> None:
    """SGLang has checked the ids of the request itself; a hint's own are the rest of the prompt."""
    for number, segment in enumerate(hint.segments):
        highest = max(segment.ids, default=0) if isinstance(segment, Known) else 0
        if highest >= vocab_size:
            raise TaskRefused(f"segment {number} has token id {highest}; the model's ids are below {vocab_size}")


def _note_cached(held: HeldTasks, req: TaskRequest) -> None:
    """What of the known prompt was in the cache before the run, and not put there by a sibling."""
    task = req.task
    if len(task.prompt) == 0:
        return
    match_kv_cache(req, held.scheduler.tree_cache, max_prefix_len=len(task.prompt) - 1)
    cached = req.num_matched_prefix_tokens
    for sibling in held.table.run_of(task):
        other = held.requests.get(sibling.rid)
        if other is None or other is req or other.cached_before_run >= cached:
            continue
        # The sibling came first and missed its next token: from there on, what both share is the run's own.
        first_miss = other.cached_before_run + 1
        if sibling.prompt[:first_miss] == task.prompt[:first_miss]:
            cached = other.cached_before_run
    req.cached_before_run = cached
