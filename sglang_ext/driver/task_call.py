"""One task's request: its stream read, its time limits kept, its abort sent once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from grape_dsl.task import Timeout
from sglang_ext.driver.engine_client import Chunk, EngineClient, GenerateRequest
from sglang_ext.driver.errors import RequestRefused
from sglang_ext.driver.events import Event, TaskSubmitted, Token
from sglang_ext.driver.prompts import TaskPlan
from sglang_ext.driver.record import ErrorKind, RunError, TaskRecord, TaskSlo, TokenLogprob
from sglang_ext.driver.task_output import TaskOutput

# SGLang's words and the plugin's; both answer 400 to this and to other faults of a request.
_TOO_LONG = ("context length", "maximum allowed length", "takes prompts below", "no room in the KV pool")
_CLIENT_CLOSED_REQUEST = 499
# The plugin ends all tasks of a run with one message that begins with the one to blame.
_BLAMED = re.compile(r"task '(\w+)'(?: failed)?(?:: )?")


class CallFailed(Exception):
    """The task ended without an output."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error.text())
        self.error = error


class TaskCall:
    """The call of one task in one run.

    Args:
        seconds: the time since the run's submission.
        output: takes the raw output ids, gives what readers get.
    """

    def __init__(
        self,
        run: str,
        plan: TaskPlan,
        client: EngineClient,
        output: TaskOutput,
        seconds: Callable[[], float],
        emit: Callable[[Event], None],
    ) -> None:
        self.plan = plan
        self.output = output
        self.submitted_s: float | None = None
        self.meta: Mapping[str, Any] = {}
        self._run = run
        self._client = client
        self._seconds = seconds
        self._emit = emit
        self._timeout = plan.options.timeout or Timeout()
        self._rid = ""
        self._finish: Mapping[str, Any] | None = None
        self._first_token_s: float | None = None
        self._end_s: float | None = None
        self._logprobs: list[TokenLogprob] = []
        self._aborting: asyncio.Task[None] | None = None
        self._expired: str | None = None
        self._limits: dict[str, asyncio.TimerHandle] = {}

    @property
    def live(self) -> bool:
        """The request is in the engine: submitted, not ended."""
        return self.submitted_s is not None and self._end_s is None

    @property
    def grape(self) -> Mapping[str, Any]:
        """The plugin's figures of the ended task; empty without the plugin."""
        reports = self.meta.get("grape")
        return reports[-1] if reports else {}

    async def execute(self, request: GenerateRequest) -> None:
        """Submit the task and read its output to the end.

        Raises:
            CallFailed: refused, aborted, or out of time.
            EngineError: the engine is gone.
        """
        self._rid = request.rid
        self.submitted_s = self._seconds()
        self._emit(TaskSubmitted(self._run, self.plan.name, self.plan.variable, self.submitted_s))
        try:
            async for chunk in self._client.generate(request):
                self._take(chunk)
        except RequestRefused as error:
            # A task that was aborted before the engine took it is refused then.
            if self._expired is None:
                raise self._failed(_kind(error.status, str(error)), str(error)) from error
        finally:
            self._end_s = self._seconds()
            for limit in self._limits.values():
                limit.cancel()
        self._check_end()

    def _take(self, chunk: Chunk) -> None:
        self.meta, self._finish = chunk.meta, chunk.finish
        self._logprobs.extend(chunk.logprobs)
        if chunk.ids and self._first_token_s is None:
            self._first_token_s = self._seconds()
        if chunk.ids and chunk.finish is None:
            self._limit("idle", self._timeout.idle)
        self._tell(self.output.take(chunk.ids, chunk.finish))

    def _tell(self, news: tuple[tuple[int, ...], str]) -> None:
        ids, text = news
        if ids or text:
            self._emit(Token(self._run, self.plan.name, self.plan.variable, text, ids, self._seconds()))

    def _check_end(self) -> None:
        if self._expired is not None:
            raise self._failed(ErrorKind.TIMEOUT, self._expired)
        if self._finish is None:
            raise self._failed(ErrorKind.ERROR, "the engine ended its stream without a result")
        if self._finish.get("type") == "abort":
            status, message = self._finish.get("status_code"), str(self._finish.get("message") or "aborted")
            raise self._failed(_kind(status, message), message)

    def prompt_complete(self, waited: asyncio.Task[None]) -> None:
        """All outputs that the prompt waits for are there, unless `waited` was cancelled: `timeout(run)` begins."""
        if self._end_s is None and not waited.cancelled():
            self._limit("run", self._timeout.run)

    def _limit(self, name: str, seconds: float | None) -> None:
        if earlier := self._limits.pop(name, None):
            earlier.cancel()
        if seconds is not None:
            what = "end" if name == "run" else "produce another token"
            message = f"did not {what} within its timeout({name} = {seconds:g}s)"
            self._limits[name] = asyncio.get_running_loop().call_later(seconds, self._expire, message)

    def _expire(self, message: str) -> None:
        self._expired = message
        self.abort()

    def abort(self) -> None:
        """Ask the engine to end the request, if it is live and was not asked before; the stream then ends."""
        if self.live and self._aborting is None:
            self._aborting = asyncio.get_running_loop().create_task(self._client.abort(self._rid))

    async def aborted(self) -> None:
        """Wait until the engine took the abort, if one was sent; an engine that is gone counts as one that did."""
        if self._aborting is not None:
            await asyncio.wait([self._aborting])
            self._aborting.exception()

    def _failed(self, kind: ErrorKind, message: str) -> CallFailed:
        blamed = _BLAMED.match(message)
        task = blamed[1] if blamed else self.plan.name
        return CallFailed(
            RunError(task=task, kind=kind, message=message[blamed.end() :].strip() if blamed else message)
        )

    def record(self) -> TaskRecord:
        """The task's record as far as it came."""
        early = self.grape
        finish = self._finish.get("type") if self._finish else "abort" if self._aborting else None
        return TaskRecord(
            output_text=self.output.text,
            output_ids=list(self.output.ids),
            prompt_tokens=self.meta.get("prompt_tokens"),
            cached_tokens=early.get("cached_tokens", self.meta.get("cached_tokens")),
            early_tokens=early.get("early_tokens", 0),
            early_chunks=early.get("early_chunks", 0),
            first_token_s=self._first_token_s,
            end_s=self._end_s,
            finish_reason=finish,
            slo=TaskSlo.of(early["slo"]) if "slo" in early else None,
            logprobs=None if self.plan.options.logprobs in (None, False) else self._logprobs,
        )


def _kind(status: int | None, message: str) -> ErrorKind:
    """What a refusal or an abort means to the user."""
    if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.GATEWAY_TIMEOUT):
        return ErrorKind.TIMEOUT
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or any(words in message for words in _TOO_LONG):
        return ErrorKind.TOO_LONG
    return ErrorKind.CANCELLED if status in (None, _CLIENT_CLOSED_REQUEST) else ErrorKind.ERROR
