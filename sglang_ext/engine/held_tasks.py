"""The tasks of runs inside the scheduler: who waits, what became known, what the next step takes of them."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_ABORT

from sglang_ext.engine import early_kv, intake
from sglang_ext.engine.completion import complete_prompt, too_long
from sglang_ext.engine.event_log import EventLog
from sglang_ext.engine.output_streams import matched_stop
from sglang_ext.engine.report import report
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.engine.twins import without_twins
from sglang_ext.policy.early_budget import EarlyBudget, plan, yields_first
from sglang_ext.policy.snapshot import Holding, Prefill, Snapshot
from sglang_ext.settings import EngineSettings, Streaming
from sglang_ext.tasks.state import TaskState
from sglang_ext.tasks.table import RunTable

# The tokens of an urgent piece are bounded by SGLang's own chunk size alone.
UNBOUNDED = 1 << 30


class HeldTasks:
    """One scheduler's tasks.

    A step goes: collect new outputs, grow prompts with them, offer what the policy picks to SGLang's
    queue; and after SGLang has formed its batch take back what it left.

    Args:
        scheduler: the GrapeScheduler; this class and its neighbours are the ones that reach into it.
    """

    def __init__(self, scheduler: Any, settings: EngineSettings, log: EventLog) -> None:
        self.scheduler = scheduler
        self.settings = settings
        self.log = log
        self.table = RunTable(settings.max_tasks)
        self.requests: dict[str, TaskRequest] = {}
        self.growing: dict[str, TaskRequest] = {}
        self.step = 0
        # A request that is not early work found no room for its KV.
        self.short = False
        self._limits: EarlyBudget | None = None
        self._allowances: dict[str, int] = {}
        self._failures: list[tuple[str, str, int]] = []

    def __bool__(self) -> bool:
        """Whether there is anything to do in a step."""
        return bool(self.requests or self._failures)

    # Into the table and out of it

    def accept(self, req: TaskRequest) -> bool:
        """Take a request that has just arrived; returns whether it is dealt with (else it is an ordinary one)."""
        return intake.accept(self, req)

    def enter(self, req: TaskRequest) -> None:
        """From here on the request is an ordinary one of SGLang's."""
        task = req.task
        if task.state is not TaskState.READY:
            task.move(TaskState.READY)
        task.move(TaskState.RUNNING)
        self.growing.pop(req.rid, None)

    def fail_soon(self, run_id: str, message: str, status: int) -> None:
        """End a run at the start of the next step; for callers in the middle of one."""
        self._failures.append((run_id, message, status))

    def end_run(self, run_id: str, message: str, status: int) -> None:
        """Abort every living task of a run and give back what they hold."""
        for task in self.table.end_run(run_id, message):
            req = self.requests.pop(task.rid, None)
            if req is None:
                continue
            if self.growing.pop(task.rid, None) is not None:
                early_kv.withdraw(self.scheduler, req, message, status)
            else:
                self.scheduler.abort_ordinary(req, message, status)
            self.log.state(req)

    # One step

    def begin_step(self, running_batch: Any, last_batch: Any) -> None:
        """Everything that comes before SGLang forms its batch, once the last batch's pieces are absorbed."""
        self.step += 1
        failures, self._failures = self._failures, []
        for failure in failures:
            self.end_run(*failure)
        self._collect()
        self._grow()
        self._offer(running_batch, last_batch)

    def end_step(self) -> None:
        """Take back what SGLang did not launch, so that its queue holds ordinary requests only."""
        queue = self.scheduler.waiting_queue
        if any(self.holds(req) for req in queue):
            self.scheduler.waiting_queue = [req for req in queue if not self.holds(req)]

    def holds(self, req: Any) -> bool:
        """Whether a request is one of those that grow here, and in SGLang's queue for one step at most."""
        return self.growing.get(req.rid) is req

    def allowance(self, req: TaskRequest) -> int:
        """Tokens that the plan gives this request in this step."""
        return self._allowances.get(req.rid, 0)

    def yield_kv(self) -> bool:
        """Give back the KV of the task that yields first; returns whether there was one."""
        for rid in yields_first(self._holding()):
            early_kv.give_up(self.scheduler, self.growing[rid])
            return True
        return False

    def yield_all(self) -> None:
        """Give back all KV that tasks hold before they run."""
        for req in self.growing.values():
            if req.kv.holds_kv:
                early_kv.give_up(self.scheduler, req)

    def report(self, req: TaskRequest) -> dict[str, Any]:
        return report(req)

    def counts(self) -> dict[str, int]:
        """Counters that are all zero when nothing is left of any run."""
        return {
            "tasks": len(self.table),
            "requests": len(self.requests),
            "held": len(self.growing),
            "rows": sum(req.kv.holds_kv for req in self.growing.values()),
            "locks": sum(req.lock is not None for req in self.growing.values()),
        }

    def _collect(self) -> None:
        """Hand new output ids to the table, and end what has ended."""
        for rid, req in list(self.requests.items()):
            if rid in self.growing or rid not in self.requests:
                continue
            task = req.task
            if not req.finished():
                output = self.table.output(task)
                if len(req.output_ids) > output.seen:
                    new = req.output_ids[output.seen :]
                    output.push(new)
                    self.log.tokens(req, len(new))
                continue
            reason = req.finished_reason
            if isinstance(reason, FINISH_ABORT):
                status = reason.status_code or HTTPStatus.INTERNAL_SERVER_ERROR
                self.end_run(task.hint.run, f"task {task.hint.task!r} failed: {reason.message}", status)
                continue
            try:
                self.table.finish(task, req.output_ids_through_stop, matched_stop(reason))
            except ValueError as error:
                message = f"output of task {task.hint.task!r}: {error}"
                self.end_run(task.hint.run, message, HTTPStatus.INTERNAL_SERVER_ERROR)
                continue
            del self.requests[rid]
            self.log.state(req)

    def _grow(self) -> None:
        now = time.monotonic()
        for rid, req in list(self.growing.items()):
            task = req.task
            if task.complete or rid not in self.growing:
                continue
            if req.early is None and self.table.upstreams_ended(task):
                self._note_early(req)
            # The last upstream may end without another id: the prompt is complete all the same.
            if self.table.grow(task) or task.complete:
                req.grown_s = now
                req.lapsed = False
            if message := too_long(self.scheduler, req):
                self.end_run(task.hint.run, f"task {task.hint.task!r}: {message}", HTTPStatus.BAD_REQUEST)
            elif task.complete:
                self._complete(req, now)

    def _note_early(self, req: TaskRequest) -> None:
        """The last upstream has ended: what is in KV now was early."""
        in_kv = req.prefix_len if req.kv.holds_kv else req.found_in_cache
        kept = [piece for piece in req.pieces if piece.end <= in_kv]
        req.early = (max(0, in_kv - req.cached_before_run), sum(piece.streamed > 0 for piece in kept))
        self.log.upstreams_ended(req, in_kv)

    def _complete(self, req: TaskRequest, now: float) -> None:
        task = req.task
        if message := complete_prompt(self.scheduler, req):
            self.end_run(task.hint.run, f"task {task.hint.task!r}: {message}", HTTPStatus.BAD_REQUEST)
            return
        req.complete_s = now
        task.move(TaskState.READY)
        self.log.state(req)

    def _offer(self, running_batch: Any, last_batch: Any) -> None:
        """Ask the policy, and put what it picks into SGLang's queue."""
        if not self.growing:
            self.short = False
            return
        ready = self._enter_without_kv()
        chosen = plan(self._snapshot(running_batch, last_batch, ready), self.limits)
        for rid in chosen.give_up:
            early_kv.give_up(self.scheduler, self.growing[rid])
        if self.short:
            running_batch.batch_is_full = False
        self.short = False
        self._allowances = dict.fromkeys(chosen.urgent, UNBOUNDED) | dict(chosen.early)
        urgent = [self.growing[rid] for rid in chosen.urgent]
        early = [self.growing[rid] for rid, _ in chosen.early]
        self.scheduler.waiting_queue[:] = [*urgent, *self.scheduler.waiting_queue, *early]

    def _enter_without_kv(self) -> list[TaskRequest]:
        """Send complete prompts that hold no KV to SGLang's queue; returns the requests that stay."""
        entering, staying = [], []
        for req in list(self.growing.values()):
            if req.rests_until > self.step or req.lapsed:
                continue
            if req.task.complete and not req.kv.holds_kv:
                self.enter(req)
                entering.append(req)
            else:
                staying.append(req)
        self.scheduler.waiting_queue[:0] = entering
        return staying

    def _snapshot(self, running_batch: Any, last_batch: Any, ready: list[TaskRequest]) -> Snapshot:
        scheduler = self.scheduler
        prefills = []
        # Without a radix tree nothing can be found there.
        for req in ready if scheduler.server_args.disable_radix_cache else without_twins(ready):
            cached = req.prefix_len if req.kv.holds_kv else req.found_in_cache
            pending = self.visible(req) - cached
            if pending > 0:
                prefills.append(Prefill(req.rid, pending, req.kv.holds_kv, req.task.order, req.task.complete))
        return Snapshot(
            ready=tuple(prefills),
            holding=self._holding(),
            decoding=self._decoding(running_batch, last_batch),
            first=self._first(running_batch),
            kv_free=scheduler.token_to_kv_pool_allocator.available_size() + scheduler.tree_cache.evictable_size(),
            short=self.short,
        )

    def _decoding(self, running_batch: Any, last_batch: Any) -> int:
        """Rows that decode next: after a prefill or a mixed step SGLang merges the last batch in later."""
        rows = len(running_batch.reqs)
        if last_batch is not None and last_batch.forward_mode.is_extend():
            chunked = self.scheduler.chunked_req
            rows += sum(req is not chunked and not req.finished() for req in last_batch.reqs)
        return rows

    def _first(self, running_batch: Any) -> int:
        """Tokens of prefill that SGLang's own queue may launch, an upper bound: the cache is not asked."""
        chunked = self.scheduler.chunked_req
        first = len(chunked.origin_input_ids) - chunked.prefix_len if chunked is not None else 0
        if running_batch.batch_is_full:
            return first
        return first + sum(len(req.origin_input_ids) for req in self.scheduler.waiting_queue)

    def visible(self, req: TaskRequest) -> int:
        """How much of the prompt may be prefilled now."""
        task = req.task
        if task.complete:
            return len(task.prompt)
        if self.settings.streaming is Streaming.OFF or req.asked_logprob_start is not None:
            return 0
        known = len(task.prompt) if self.settings.streaming is Streaming.ON else task.known_prefix
        # What may turn out to be the prompt's last token is left for the piece that samples behind it.
        return min(known, task.certain_length - 1)

    def _holding(self) -> tuple[Holding, ...]:
        return tuple(
            Holding(req.rid, req.prefix_len, req.task.order, req.task.complete)
            for req in self.growing.values()
            if req.kv.holds_kv and req.rests_until <= self.step
        )

    @property
    def limits(self) -> EarlyBudget:
        if self._limits is None:
            settings = self.settings
            self._limits = EarlyBudget(settings.prefill_budget, settings.max_held_rows, settings.kv_reserve)
        return self._limits
