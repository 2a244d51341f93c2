"""TaskRequest: an SGLang request that is a task of a run, and whose prompt may still grow."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_MATCHED_STR, Req

from sglang_ext.tasks.state import TaskState
from sglang_ext.tasks.task import Task


@dataclass(slots=True)
class Piece:
    """A stretch of the prompt that one step prefills: ids [start, end), of which `streamed` came through a hole."""

    step: int
    start: int
    end: int
    streamed: int
    launched_s: float
    done_s: float | None = None


class TaskRequest(Req):  # type: ignore[misc]
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
        self.asked_max_new_tokens: int | None = self.sampling_params.max_new_tokens
        # A piece of it is in the batch that was launched last, and more is to come.
        self.middle_in_flight = False
        # First step in which it may be launched again; a result of its given-up KV may be in flight.
        self.rests_until = 0
        # Where logprobs of the prompt start; they need each piece's next token, so such a prompt waits whole.
        self.asked_logprob_start: int | None = None
        # So much of its open prompt is in the cache already, without a row of its own.
        self.found_in_cache = 0
        # It gave its KV back since nothing came for it; it is prefilled again when something does.
        self.lapsed = False
        self.withdrawn = False
        self.cached_before_run = 0
        self.pieces: list[Piece] = []
        self.early: tuple[int, int] | None = None
        self.submitted_s = 0.0
        self.grown_s = 0.0
        self.complete_s: float | None = None
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None

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

    def init_next_round_input(self, tree_cache: Any = None, cow_mamba: bool | None = None) -> None:
        # What it holds is in its own row: matching it against the tree again would lose the rest.
        if self.growing and self.kv.holds_kv:
            tree_cache = None
        super().init_next_round_input(tree_cache, cow_mamba)

    def update_finish_state(self, new_accepted_len: int = 1) -> None:
        super().update_finish_state(new_accepted_len)
        reason = self.finished_reason
        # SGLang reports logits that are no numbers as a stop string of its own; readers must not go on from that.
        if isinstance(reason, FINISH_MATCHED_STR) and reason.matched not in self.sampling_params.stop_strs:
            message = f"the model gave no valid token ({reason.matched}); check its weights and its data type"
            self.finished_reason = FINISH_ABORT(message, HTTPStatus.INTERNAL_SERVER_ERROR)

    def adopt_prompt(self, task: Task) -> None:
        """Take the task's prompt for its own: the same array, so that it grows with it."""
        self._task = task
        self.origin_input_ids = task.prompt
        self.origin_input_ids_unpadded = task.prompt
