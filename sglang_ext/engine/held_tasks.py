"""The tasks of runs inside the scheduler: who waits, what became known, what the next step takes of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sglang_ext.engine import early_kv, intake
from sglang_ext.engine.cost_profile import pick, step_times
from sglang_ext.engine.decision_time import DecisionTime
from sglang_ext.engine.event_log import EventLog
from sglang_ext.engine.objectives import Objectives
from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.prompt_growth import PromptGrowth
from sglang_ext.engine.report import report
from sglang_ext.engine.step_planner import StepPlanner
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.engine.told_prompts import ToldPrompts
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
        # Those of living tasks: each is growing, or entered: one of SGLang's.
        self.requests: dict[str, TaskRequest] = {}
        self.growing: dict[str, TaskRequest] = {}
        self.entered: dict[str, TaskRequest] = {}
        # Requests of SGLang's queue whose prompts a plan has begun to prefill.
        self.cut: dict[str, PiecewiseRequest] = {}
        # So that a step looks at what it concerns alone: growing ones whose prompts may have tokens to prefill, which
        # can name some too many, and those whose prompts are complete.
        self.pending: dict[str, TaskRequest] = {}
        self.whole: dict[str, TaskRequest] = {}
        self.told = ToldPrompts(self)
        self.step = 0
        # The lead rank's clock, as it was when this step's requests were received; it stands still while all is idle.
        self.now_s = 0.0
        self.ticked = False
        self.decisions = DecisionTime()
        self._growth = PromptGrowth(self)
        self._failures: list[tuple[str, str, int]] = []

    def __bool__(self) -> bool:
        """Whether there is anything to do in a step."""
        return bool(self.requests or self.cut or self._failures)

    # Into the table and out of it

    def accept(self, req: TaskRequest) -> bool:
        """Take a request that has just arrived; returns whether it is dealt with (else it is an ordinary one)."""
        return intake.accept(self, req)

    def hold(self, req: TaskRequest) -> None:
        """The request's prompt is to grow here."""
        self.growing[req.rid] = self.pending[req.rid] = req
        self.told.changed(req)
        self._growth.listen(req.task)

    def enter(self, req: TaskRequest) -> None:
        """From here on the request is an ordinary one of SGLang's."""
        task = req.task
        if task.state is not TaskState.READY:
            task.move(TaskState.READY)
        task.move(TaskState.RUNNING)
        self._release(req)
        self.entered[req.rid] = req

    def forget(self, req: TaskRequest) -> TaskRequest | None:
        """The request is no living task's any more; returns it if it was growing."""
        self.requests.pop(req.rid, None)
        self.entered.pop(req.rid, None)
        return self._release(req)

    def _release(self, req: TaskRequest) -> TaskRequest | None:
        self.pending.pop(req.rid, None)
        self.whole.pop(req.rid, None)
        self.told.changed(req)
        return self.growing.pop(req.rid, None)

    def fail_soon(self, run_id: str, message: str, status: int) -> None:
        """End a run at the start of the next step; for callers in the middle of one."""
        self._failures.append((run_id, message, status))

    def end_run(self, run_id: str, message: str, status: int) -> None:
        """Abort every living task of a run and give back what they hold."""
        for task in self.table.end_run(run_id, message):
            req = self.requests.get(task.rid)
            if req is None:
                continue
            held = self.forget(req) or self.cut.pop(task.rid, None)
            if held is not None:
                early_kv.withdraw(self.scheduler, req, message, status)
            else:
                self.scheduler.abort_ordinary(req, message, status)
            self.log.state(req)

    # One step

    def begin_step(self, running_batch: Any, last_batch: Any) -> None:
        """Everything that comes before SGLang forms its batch, once the last batch's pieces are absorbed."""
        self.step += 1
        self.log.step = self.step
        failures, self._failures = self._failures, []
        for failure in failures:
            self.end_run(*failure)
        self._growth.collect()
        self._growth.grow()
        self.distances.begin_step()
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

    def yield_all(self) -> None:
        """Give back all KV that requests hold before they run."""
        for req in self.told.holders():
            early_kv.give_up(self.scheduler, req)

    def forget_finds(self) -> None:
        """The cache is empty."""
        for req in self.growing.values():
            req.found_in_cache = None
            self.told.changed(req)
        self.pending.update((rid, req) for rid, req in self.growing.items() if not req.lapsed)

    def report(self, req: TaskRequest) -> dict[str, Any]:
        return report(req, *self.objectives.of(req))

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

    def _enter_without_kv(self) -> None:
        """Send complete prompts that hold no KV to SGLang's queue."""
        entering = [
            req
            for req in self.whole.values()
            if not req.kv.holds_kv and not (req.rests_until > self.step or req.lapsed)
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
        return Objectives(self.settings.slo_ttft, self.settings.slo_tbt, self.planner.step_s())

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

    def _rest(self, task: Task) -> float:
        req = self.requests.get(task.rid)
        if req is None:
            return self.lengths.rest(task.hint.task, self.table.output(task).seen)
        return self.lengths.rest(task.hint.task, req.known_ids, req.asked_max_new_tokens)
