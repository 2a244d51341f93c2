"""GrapeScheduler: SGLang's scheduler with tasks whose prompts grow.

Glue only: each override hands over to `HeldTasks` and its neighbours, then to SGLang. While no task
is present, SGLang's scheduling runs unchanged.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

from sglang.srt.managers.io_struct import AbortReq
from sglang.srt.managers.schedule_batch import FINISH_ABORT
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.runtime_context import get_parallel
from sglang.utils import TypeBasedDispatcher

from sglang_ext.engine import early_kv, intake
from sglang_ext.engine.clock import LapseReq, TaskClock, TickReq
from sglang_ext.engine.event_log import EventLog
from sglang_ext.engine.held_tasks import HeldTasks
from sglang_ext.engine.output_streamer import TaskOutputStreamer
from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.policy_order import TaskAwarePolicy
from sglang_ext.engine.prefill_adder import TaskPrefillAdder
from sglang_ext.engine.proof import internal_state
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.engine.unsupported import refuse_unsupported, refuse_unsupported_model
from sglang_ext.settings import EngineSettings

# The status of a task that ends because its client went away; HTTP has no name for it.
CLIENT_CLOSED_REQUEST = 499
# Seconds that a step without work waits while tasks are held.
IDLE_WAIT = 0.001


class GrapeScheduler(Scheduler):  # type: ignore[misc]
    policy: Any
    _arrivals = 0

    def __init__(self, server_args: Any, port_args: Any) -> None:
        refuse_unsupported(server_args)
        super().__init__(server_args, port_args)
        refuse_unsupported_model(self)
        # A wrong setting should end the start, not the first request.
        _ = self.held.planner

    @cached_property
    def held(self) -> HeldTasks:
        settings = EngineSettings.from_environment()
        return HeldTasks(self, settings, EventLog(settings.event_log if self._is_lead() else ""))

    @cached_property
    def task_clock(self) -> TaskClock:
        return TaskClock(self.held)

    @staticmethod
    def _is_lead() -> bool:
        return bool(get_parallel().tp_rank == 0)

    # Classes that SGLang asks for

    def get_prefill_adder_class(self) -> type[TaskPrefillAdder]:
        return self._adder_class

    @cached_property
    def _adder_class(self) -> type[TaskPrefillAdder]:
        return type("BoundTaskPrefillAdder", (TaskPrefillAdder,), {"held": self.held})

    def get_output_streamer_class(self) -> type[TaskOutputStreamer]:
        return type("BoundTaskOutputStreamer", (TaskOutputStreamer,), {"held": self.held})

    def init_schedule_policy(self) -> None:
        super().init_schedule_policy()
        self.policy = TaskAwarePolicy(self.policy, self)

    def init_request_dispatcher(self) -> None:
        super().init_request_dispatcher()
        self._request_dispatcher += TypeBasedDispatcher([(LapseReq, self._lapse)])
        self._request_dispatcher += TypeBasedDispatcher([(TickReq, self._tick)])

    # A request's arrival and end

    def _create_generation_req(self, recv_req: Any, *args: Any, **kwargs: Any) -> Any:
        kind = TaskRequest if intake.carries_task(recv_req.kv_hints) else PiecewiseRequest
        req = kind(*args, **kwargs)
        req.arrival, self._arrivals = self._arrivals, self._arrivals + 1
        return req

    def _add_request_to_queue(self, req: Any, is_retracted: bool = False) -> None:
        if isinstance(req, TaskRequest) and not req.arrived and self.held.accept(req):
            return
        super()._add_request_to_queue(req, is_retracted)

    def _abort_on_queued_limit(self, recv_req: Any) -> bool:
        # Pieces that a step offers are no queue: they do not count, and no one else may throw them out.
        if not self.held.growing and not self.held.cut:
            return bool(super()._abort_on_queued_limit(recv_req))
        whole = list(self.waiting_queue)
        self.waiting_queue[:] = [req for req in whole if not self.held.holds(req)]
        refused = super()._abort_on_queued_limit(recv_req)
        kept = {id(req) for req in self.waiting_queue}
        self.waiting_queue[:] = [req for req in whole if id(req) in kept or self.held.holds(req)]
        return bool(refused)

    def send_abort_output(self, abort_req: Any, req: Any) -> None:
        super().send_abort_output(abort_req, req)
        if isinstance(req, TaskRequest) and req.has_task and req.task.alive:
            task = req.task
            message = (abort_req.finished_reason or {}).get("message") or "it was aborted"
            self.held.fail_soon(task.hint.run, f"task {task.hint.task!r}: {message}", CLIENT_CLOSED_REQUEST)

    def abort_request(self, recv_req: Any) -> None:
        """An abort of one task ends its whole run, also when it overtakes the task."""
        hit = [r for r in self.held.requests.values() if recv_req.abort_all or r.rid.startswith(recv_req.rid)]
        reason = recv_req.finished_reason or {}
        status = reason.get("status_code") or CLIENT_CLOSED_REQUEST
        for req in hit:
            if req.task.alive:
                message = reason.get("message") or f"the run was cancelled at task {req.task.hint.task!r}"
                self.held.end_run(req.task.hint.run, message, status)
        for cut in list(self.held.cut.values()):
            if recv_req.abort_all or cut.rid.startswith(recv_req.rid):
                del self.held.cut[cut.rid]
                self.held.told.changed(cut)
                early_kv.withdraw(self, cut, reason.get("message") or "it was aborted", reason.get("status_code"))
        # SGLang's tokenizer keeps requests back while generation is paused or weights change, but no aborts.
        if not hit and (run := self.held.table.awaits(recv_req.rid)) is not None:
            self.held.end_run(run, reason.get("message") or "it was cancelled before all of its tasks came", status)
        reasons = [(req, req.to_finish) for req in hit if req.to_finish is not None]
        super().abort_request(recv_req)
        # SGLang gives every abort with a message the status 503.
        for req, kept in reasons:
            req.to_finish = kept

    def abort_ordinary(self, req: TaskRequest, message: str, status: int) -> None:
        """Abort a task's request that SGLang's own queues or batches hold."""
        reason = FINISH_ABORT(message, status)
        super().abort_request(AbortReq(rid=req.rid, abort_message=message, finished_reason=reason.to_json()))
        if req.to_finish is not None:
            req.to_finish = reason

    def _poll_timeout_aborts(self) -> list[Any]:
        return [*super()._poll_timeout_aborts(), *self.task_clock.poll(), *self.task_clock.tick()]

    def _lapse(self, recv_req: LapseReq) -> None:
        req = self.held.growing.get(recv_req.rid)
        if req is not None and req.kv.holds_kv and not (req.middle_in_flight or req.task.complete):
            early_kv.give_up(self, req)
            req.lapsed = True
            del self.held.pending[req.rid]
            self.held.told.changed(req)

    def _tick(self, recv_req: TickReq) -> None:
        self.held.tick(recv_req.now_s)

    # One step

    def get_next_batch_to_run(self, running_batch: Any, last_batch: Any) -> Any:
        planner, decisions = self.held.planner, self.held.decisions
        planner.take_over_chunked(last_batch)
        # Also when no task is left: a withdrawn one may have a piece in the last batch.
        early_kv.absorb(self, last_batch)
        present = bool(self.held)
        if present:
            with decisions.counted():
                self.held.begin_step(running_batch, last_batch)
        else:
            # A tick may have come with what ended the last task; it is no time of a later step.
            self.held.ticked = False
            decisions.end_step(ran=False)
            return super().get_next_batch_to_run(running_batch, last_batch)
        plan = super().get_next_batch_to_run(running_batch, last_batch)
        with decisions.counted():
            self.held.end_step(plan.batch_to_run)
        decisions.end_step(ran=plan.batch_to_run is not None)
        if plan.batch_to_run is None and last_batch is None:
            # Everything waits for something that has not arrived; on few cores a busy loop would delay just that.
            time.sleep(IDLE_WAIT)
        return plan

    def _should_defer_prefill(self, running_batch: Any) -> bool:
        # A plan has said already how much of which prompt this step prefills.
        return not self.held.planner.planned and bool(super()._should_defer_prefill(running_batch))

    def get_num_allocatable_reqs(
        self, running_bs: int, beam_width: int | None = None, running_batch: Any = None, num_held_rows: int = 0
    ) -> int:
        # As SGLang's one chunked prompt, those in pieces need no row, and go on where none is free.
        held_rows = max(num_held_rows, self.held.planner.rows_offered)
        return int(super().get_num_allocatable_reqs(running_bs, beam_width, running_batch, held_rows))

    def update_running_batch(self, batch: Any) -> Any:
        # Early KV goes before SGLang would retract or abort a request that decodes.
        while self.held and not batch.check_decode_mem() and self.held.planner.yield_kv():
            pass
        return super().update_running_batch(batch)

    # States of the whole engine

    def is_fully_idle(self, for_health_check: bool = False, ignore_waiting: bool = False) -> bool:
        idle = super().is_fully_idle(for_health_check, ignore_waiting)
        growing = (*self.held.growing.values(), *self.held.cut.values())
        # As with SGLang's own queue: while waiting ones are ignored, those with KV still count.
        busy = any(req.kv.holds_kv for req in growing) if ignore_waiting else bool(growing)
        return bool(idle and (for_health_check or not busy))

    def flush_cache(self, empty_cache: bool = True) -> bool:
        flushed = bool(super().flush_cache(empty_cache))
        if flushed:
            self.held.forget_finds()
        return flushed

    def pause_generation(self, recv_req: Any) -> None:
        if recv_req.mode == "retract":
            early_kv.absorb(self, self.last_batch)
            self.held.yield_all()
        super().pause_generation(recv_req)

    def get_internal_state(self, recv_req: Any) -> Any:
        output = super().get_internal_state(recv_req)
        output.internal_state["grape"] = internal_state(self.held)
        return output
