"""From outputs to prompts: what tasks have produced goes to their readers, and prompts grow and become complete."""

from __future__ import annotations

import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING

from sglang.srt.managers.schedule_batch import FINISH_ABORT

from sglang_ext.engine.completion import complete_prompt, room, too_long
from sglang_ext.engine.output_streams import matched_stop
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.tasks.state import TaskState
from sglang_ext.tasks.task import Task

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks


class PromptGrowth:
    """One scheduler's outputs and prompts; a step looks at the prompts alone that something came for."""

    def __init__(self, held: HeldTasks) -> None:
        self._held = held
        # Request ids of the readers whose prompts can grow, in order.
        self._stirred: dict[str, None] = {}

    def collect(self) -> None:
        """Hand new output ids to the table, and end what has ended."""
        held, finished = self._held, []
        logged, now_s = held.log.is_on, held.now_s if held.ticked else None
        for req in held.entered.values():
            if req.finished_reason is not None:
                finished.append(req)
                continue
            known = len(req.output_ids)
            if known > req.known_ids:
                if logged:
                    held.log.tokens(req, known - req.known_ids)
                req.known_ids = known
                if now_s is not None:
                    req.token_s = now_s
                if known >= req.wakes_at:
                    self._hand_on(req)
        for req in finished:
            if req.rid not in held.entered:
                continue
            task, reason = req.task, req.finished_reason
            if isinstance(reason, FINISH_ABORT):
                status = reason.status_code or HTTPStatus.INTERNAL_SERVER_ERROR
                held.end_run(task.hint.run, f"task {task.hint.task!r} failed: {reason.message}", status)
                continue
            try:
                self._stir(held.table.finish(task, req.output_ids_through_stop, matched_stop(reason)))
            except ValueError as error:
                message = f"output of task {task.hint.task!r}: {error}"
                held.end_run(task.hint.run, message, HTTPStatus.INTERNAL_SERVER_ERROR)
                continue
            held.lengths.learn(task.hint.task, len(req.output_ids))
            held.forget(req)
            held.log.state(req)

    def _hand_on(self, req: TaskRequest) -> None:
        """Push what is known of an output, and note with how many ids that has to be done again."""
        table, task = self._held.table, req.task
        self._stir(table.push(task, req.ids_behind(table.output(task).seen)))
        req.wakes_at = table.stirs_from(task)

    def listen(self, task: Task) -> None:
        """The prompt has grown as far as it can: its next ids come from the output that it stops at."""
        upstream = self._held.table.waits_at(task)
        if upstream is not None and (req := self._held.entered.get(upstream.rid)) is not None:
            req.wakes_at = 0

    def _stir(self, readers: Iterable[Task]) -> None:
        self._stirred.update((task.rid, None) for task in readers)

    def grow(self) -> None:
        """Give prompts what they can take of the outputs."""
        held, now = self._held, time.monotonic()
        stirred, self._stirred = self._stirred, {}
        for rid in stirred:
            req = held.growing.get(rid)
            if req is None or req.task.complete:
                continue
            task = req.task
            held.told.changed(req)
            if req.early is None and held.table.upstreams_ended(task):
                self._note_early(req)
            # The last upstream may end without another id: the prompt is complete all the same.
            if held.table.grow(task) or task.complete:
                req.grown_s = now
                req.lapsed = False
                held.pending[rid] = req
            if message := too_long(held.scheduler, req):
                held.end_run(task.hint.run, f"task {task.hint.task!r}: {message}", HTTPStatus.BAD_REQUEST)
            elif task.complete:
                self._complete(req, now)
            else:
                task.wake_after(room(held.scheduler, req) + 1)
                self.listen(task)

    def _note_early(self, req: TaskRequest) -> None:
        """The last upstream has ended: what is in KV now was early."""
        in_kv = req.prefix_len if req.kv.holds_kv else req.found_in_cache or 0
        kept = [piece for piece in req.pieces if piece.end <= in_kv]
        req.early = (max(0, in_kv - req.cached_before_run), sum(piece.streamed > 0 for piece in kept))
        self._held.log.upstreams_ended(req, in_kv)

    def _complete(self, req: TaskRequest, now: float) -> None:
        task = req.task
        if message := complete_prompt(self._held.scheduler, req):
            self._held.end_run(task.hint.run, f"task {task.hint.task!r}: {message}", HTTPStatus.BAD_REQUEST)
            return
        req.complete_s = now
        task.move(TaskState.READY)
        self._held.whole[req.rid] = req
        self._held.log.state(req)
