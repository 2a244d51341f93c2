"""The tasks of runs inside the scheduler: who waits, what became known, what the next step takes of them."""

from __future__ import annotations

import time
from functools import cached_property
from http import HTTPStatus
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_ABORT

from sglang_ext.engine import early_kv, intake
from sglang_ext.engine.completion import complete_prompt, too_long
from sglang_ext.engine.cost_profile import pick, step_times
from sglang_ext.engine.event_log import EventLog
from sglang_ext.engine.objectives import Objectives
from sglang_ext.engine.output_streams import matched_stop
from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.report import report
from sglang_ext.engine.step_planner import StepPlanner
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.policy.configuration import Configuration, UnknownNameError
from sglang_ext.policy.output_lengths import OutputLengths
from sglang_ext.policy.policies import new_policy
from sglang_ext.profile.store import Choice
from sglang_ext.settings import EngineSettings, SettingsError
from sglang_ext.tasks.distances import Distances
from sglang_ext.tasks.state import TaskState
from sglang_ext.tasks.table import RunTable
from sglang_ext.tasks.task import Task


class HeldTasks:
    """One scheduler's tasks.

    A step goes: collect new outputs, grow prompts with them, then plan (`StepPlanner`).

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
        # Requests of SGLang's queue whose prompts a plan has begun to prefill.
        self.cut: dict[str, PiecewiseRequest] = {}
        self.step = 0
        # The lead rank's clock, as it was when this step's requests were received; it stands still while all is idle.
        self.now_s = 0.0
        self.ticked = False
        self._failures: list[tuple[str, str, int]] = []

    def __bool__(self) -> bool:
        """Whether there is anything to do in a step."""
        return bool(self.requests or self.cut or self._failures)

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
            held = self.growing.pop(task.rid, None) or self.cut.pop(task.rid, None)
            if held is not None:
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
        self._enter_without_kv()
        self.planner.begin(running_batch, last_batch)

    def end_step(self, batch: Any) -> None:
        """Once SGLang has formed its batch, None if there is nothing to run."""
        self.planner.end(batch)
        self.ticked = False

    def tick(self, now_s: float) -> None:
        """The lead rank's clock says so."""
        self.now_s = now_s
        self.ticked = True

    def holds(self, req: Any) -> bool:
        """Whether a request is one of those in pieces, and in SGLang's queue for one step at most."""
        return self.growing.get(req.rid) is req or self.cut.get(req.rid) is req

    def has_produced(self, run_id: str) -> bool:
        """Whether a token of the run has appeared."""
        return self.table.has_produced(run_id)

    def yield_all(self) -> None:
        """Give back all KV that requests hold before they run."""
        for req in (*self.growing.values(), *self.cut.values()):
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
            "cut": len(self.cut),
            "rows": sum(req.kv.holds_kv for req in (*self.growing.values(), *self.cut.values())),
            "locks": sum(req.lock is not None for req in (*self.growing.values(), *self.cut.values())),
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
            self.lengths.learn(task.hint.task, len(req.output_ids))
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
        in_kv = req.prefix_len if req.kv.holds_kv else req.found_in_cache or 0
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

    def _enter_without_kv(self) -> None:
        """Send complete prompts that hold no KV to SGLang's queue."""
        entering = [
            req
            for req in self.growing.values()
            if req.task.complete and not req.kv.holds_kv and not (req.rests_until > self.step or req.lapsed)
        ]
        for req in entering:
            self.enter(req)
        self.scheduler.waiting_queue[:0] = entering

    # What planning needs

    @cached_property
    def lengths(self) -> OutputLengths:
        return OutputLengths()

    @cached_property
    def distances(self) -> Distances:
        return Distances(self.table, self._rest)

    @cached_property
    def objectives(self) -> Objectives:
        return Objectives(self.settings.slo_ttft, self.settings.slo_tbt, self.planner.step_s)

    @cached_property
    def profile(self) -> Choice:
        return pick(self.scheduler, self.settings.profile)

    @cached_property
    def planner(self) -> StepPlanner:
        settings = self.settings
        times = step_times(self.profile)
        try:
            configuration = Configuration(
                off=frozenset(name for part in settings.policy_off.split(",") if (name := part.strip())),
                eviction=settings.eviction,
                reserve=settings.kv_reserve,
                budget=settings.prefill_budget,
            )
            policy = new_policy(settings.policy, configuration, times)
        except UnknownNameError as error:
            raise SettingsError(f"GRAPE_POLICY, GRAPE_POLICY_OFF or GRAPE_EVICTION: {error}") from None
        return StepPlanner(self, policy, times)

    def _rest(self, task: Task, written: int) -> float:
        req = self.requests.get(task.rid)
        return self.lengths.rest(task.hint.task, written, req.asked_max_new_tokens if req is not None else None)
