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
        held = self._held
        for rid, req in list(held.entered.items()):
            if rid not in held.entered:
                continue
            task = req.task
            if not req.finished():
                seen = held.table.output(task).seen
                if len(req.output_ids) > seen:
                    new = req.output_ids[seen:]
                    self._stir(held.table.push(task, new))
                    held.log.tokens(req, len(new))
                continue
            reason = req.finished_reason
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
            req.changed()
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
