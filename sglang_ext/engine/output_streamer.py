"""The output streamer: keeps internal work from clients and adds a task's own figures to its output."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sglang.srt.managers.scheduler_components.output_streamer import SchedulerOutputStreamer

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks

META_KEY = "grape"


class TaskOutputStreamer(SchedulerOutputStreamer):  # type: ignore[misc]
    """SGLang's streamer. Task requests go out apart from ordinary ones, whose messages stay as they are."""

    has_additional_customized_info = True
    held: ClassVar[HeldTasks]

    def stream_output(self, reqs: Sequence[Any], return_logprob: bool, skip_req: Any = None) -> None:
        tasks = [req for req in reqs if isinstance(req, TaskRequest)]
        if not tasks and not any(isinstance(req, PiecewiseRequest) and req.pieces for req in reqs):
            super().stream_output(reqs, return_logprob, skip_req)
            return
        # SGLang skips one middle chunk of a batch; where prompts are in pieces there may be others.
        ordinary = [req for req in reqs if not isinstance(req, TaskRequest) and _has_output(req)]
        if ordinary:
            super().stream_output(ordinary, return_logprob, skip_req)
        visible = [req for req in tasks if not req.withdrawn and _has_output(req)]
        if visible:
            now = time.monotonic()
            for req in visible:
                _stamp(req, now)
            super().stream_output(visible, return_logprob, None)

    def build_additional_customized_info(self, reqs: Sequence[Any]) -> dict[str, list[Any]]:
        if not any(isinstance(req, TaskRequest) and req.has_task for req in reqs):
            return {}
        return {META_KEY: [[self.held.report(req)] if req.finished() else [] for req in reqs]}

    def is_request_level_customized_info_key(self, key: str) -> bool:
        return key == META_KEY or super().is_request_level_customized_info_key(key)


def _has_output(req: Any) -> bool:
    """Whether there is something new for a client: not while a prompt is prefilled in pieces."""
    if req.finished() or not isinstance(req, PiecewiseRequest):
        return bool(req.output_ids) or req.finished()
    new = len(req.output_ids) != req.streamed_ids
    req.streamed_ids = len(req.output_ids)
    return new


def _stamp(req: TaskRequest, now: float) -> None:
    if req.output_ids:
        if req.last_token_s is None:
            req.first_token_s = now
        else:
            req.worst_gap_s = max(now - req.last_token_s, req.worst_gap_s or 0.0)
        req.last_token_s = now
    # Early prefill of this run is its own figure and nobody's cache hit.
    req.cached_tokens = req.cached_tokens_device = req.cached_before_run
