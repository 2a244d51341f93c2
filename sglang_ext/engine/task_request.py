"""TaskRequest: an SGLang request that is a task of a run, and whose prompt may still grow."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_MATCHED_STR

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.tasks.state import TaskState
from sglang_ext.tasks.task import Task


class TaskRequest(PiecewiseRequest):
    """A request with a hint of its own.

    Until its last piece is launched it is **growing**: it lives in the extension's own table, its
    pieces are prefilled like the middle chunks of a chunked prompt, and none of SGLang's queues
    holds it between steps. After that it is an ordinary request.
    """

    finished_reason: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._task: Task | None = None
        self.arrived = False
        # Output ids that are known, one step after another, and how many there must be before a reader needs them.
        self.known_ids = 0
        self.wakes_at: float = 0
        self.asked_max_new_tokens: int | None = self.sampling_params.max_new_tokens
        # Where logprobs of the prompt start; they need each piece's next token, so such a prompt waits whole.
        self.asked_logprob_start: int | None = None
        # It gave its KV back since nothing came for it; it is prefilled again when something does.
        self.lapsed = False
        # Its first ids as bytes, once there are enough to compare it with others.
        self.front: bytes | None = None
        self.cached_before_run = 0
        self.early: tuple[int, int] | None = None
        self.submitted_s = 0.0
        self.grown_s = 0.0
        self.complete_s: float | None = None
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None
        self.worst_gap_s: float | None = None

    @property
    def task(self) -> Task:
        """Its task; only a request that was refused at the door has none."""
        assert self._task is not None
        return self._task

    @property
    def has_task(self) -> bool:
        return self._task is not None

    @property
    def growing(self) -> bool:
        return self.has_task and self.task.state in (TaskState.HELD, TaskState.PREFILLING, TaskState.READY)

    @property
    def prompt_complete(self) -> bool:
        return not self.has_task or self.task.complete

    @property
    def fixed_prefix(self) -> int:
        return self.task.known_prefix if self.has_task else 0

    def update_finish_state(self, new_accepted_len: int = 1) -> None:
        super().update_finish_state(new_accepted_len)
        reason = self.finished_reason
        # SGLang reports logits that are no numbers as a stop string of its own; readers must not go on from that.
        if isinstance(reason, FINISH_MATCHED_STR) and reason.matched not in self.sampling_params.stop_strs:
            message = f"the model gave no valid token ({reason.matched}); check its weights and its data type"
            self.finished_reason = FINISH_ABORT(message, HTTPStatus.INTERNAL_SERVER_ERROR)

    def ids_behind(self, count: int) -> Sequence[int]:
        """The known output ids behind the first so many."""
        found: Sequence[int] = self.output_ids[count : self.known_ids]
        return found

    def adopt_prompt(self, task: Task) -> None:
        """Take the task's prompt for its own: the same array, so that it grows with it."""
        self._task = task
        self.run_id, self.slo = task.hint.run, task.hint.slo
        self.origin_input_ids = task.prompt
        self.origin_input_ids_unpadded = task.prompt
