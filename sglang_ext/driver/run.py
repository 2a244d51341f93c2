"""One execution of a workflow: all tasks submitted at once, one failure ends them all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Literal

from grape_dsl.compiler import CompiledWorkflow
from sglang_ext.driver.engine_client import EngineClient
from sglang_ext.driver.errors import EngineError
from sglang_ext.driver.events import Event, RunFailed, RunFinished, RunStarted, TaskFailed, TaskFinished
from sglang_ext.driver.prompts import TaskPlan
from sglang_ext.driver.record import ErrorKind, Record, RunError, RunInfo, RunSettings
from sglang_ext.driver.requests import complete_request, held_request
from sglang_ext.driver.task_call import CallFailed, TaskCall
from sglang_ext.driver.task_output import OutputReader
from sglang_ext.driver.values import output_values
from sglang_ext.tasks.hint import new_run_id

# How long the engine may take to end what was aborted; then its streams are closed.
ABORT_SECONDS = 10.0


class Run:
    """A run that was not started yet.

    Args:
        plans: the run's tasks by name, in topological order.
        inputs: the value of every InputVar.
        reader: makes the outputs' ids and texts.
        index: the run's place among those started together.
        emit: hears every event, on the engine's event loop.
    """

    def __init__(
        self,
        client: EngineClient,
        program: CompiledWorkflow,
        plans: Mapping[str, TaskPlan],
        inputs: Mapping[str, str],
        reader: OutputReader,
        settings: RunSettings,
        *,
        index: int = 0,
        emit: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.id = new_run_id()
        self._client = client
        self._program = program
        self._plans = plans
        self._inputs = inputs
        self._settings = settings
        self._index = index
        self._emit = emit
        self._begin = 0.0
        self._calls = {
            name: TaskCall(self.id, plan, client, reader.output(plan.options), self._seconds, emit)
            for name, plan in plans.items()
        }
        self._ended: dict[str, asyncio.Event] = {}

    def _seconds(self) -> float:
        return time.monotonic() - self._begin

    async def execute(self) -> Record:
        """Run all tasks; a run that fails has status `failed` and an error in its record.

        Raises:
            EngineError: the engine is gone.
            asyncio.CancelledError: after every live request was aborted.
        """
        start, self._begin = time.time(), time.monotonic()
        self._ended = {name: asyncio.Event() for name in self._plans}
        self._emit(RunStarted(self.id, self._index, tuple(self._plans)))
        working = {asyncio.create_task(self._work(name), name=name) for name in self._plans}
        death = asyncio.create_task(self._client.died())
        error: RunError | None = None
        try:
            async with asyncio.timeout(self._settings.timeout):
                await self._all_end(working, death)
        except CallFailed as failure:
            error = failure.error
        except TimeoutError:
            error = self._out_of_time()
        except asyncio.CancelledError:
            await asyncio.shield(self._end(working, death))
            error = RunError(kind=ErrorKind.CANCELLED, message="the run was cancelled")
            self._tell_end(self._record("cancelled", error, start), error)
            raise
        finally:
            await asyncio.shield(self._end(working, death))
        record = self._record("failed" if error else "ok", error, start)
        self._tell_end(record, error)
        return record

    async def _all_end(self, working: set[asyncio.Task[None]], death: asyncio.Task[str]) -> None:
        waiting: set[asyncio.Task[None] | asyncio.Task[str]] = {*working, death}
        while waiting != {death}:
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if death in ended:
                raise EngineError(f"the engine died during a run: {death.result()}")
            failures = [failure for task in ended if (failure := task.exception()) is not None]
            # What the engine ended because of another task's failure is not the cause.
            failures.sort(key=lambda f: isinstance(f, CallFailed) and f.error.kind is ErrorKind.CANCELLED)
            if failures:
                raise failures[0]

    async def _work(self, name: str) -> None:
        plan, call = self._plans[name], self._calls[name]
        complete = asyncio.create_task(self._prompt_complete(plan))
        try:
            if self._settings.streaming == "off":
                await complete
                request = complete_request(self.id, plan, {up: self._calls[up].output for up in plan.upstream})
                if not request.input_ids:
                    message = "its prompt is empty: everything it reads came out empty; put some text around it"
                    raise CallFailed(RunError(task=name, kind=ErrorKind.ERROR, message=message))
            else:
                request = held_request(self.id, plan, len(self._plans))
            complete.add_done_callback(call.prompt_complete)
            await call.execute(request)
        finally:
            complete.cancel()
        self._ended[name].set()
        self._emit(TaskFinished(self.id, name, plan.variable, call.record(), call.grape, self._seconds()))

    async def _prompt_complete(self, plan: TaskPlan) -> None:
        for name in plan.upstream:
            await self._ended[name].wait()

    async def _end(self, working: set[asyncio.Task[None]], death: asyncio.Task[str]) -> None:
        """End what still runs: one abort for each live request, none for others."""
        dead = not death.cancel() and not death.cancelled()
        waiting = {task for task in working if not task.done()}
        for task in waiting:
            call = self._calls[task.get_name()]
            if call.live and not dead:
                call.abort()
            else:
                task.cancel()
        if waiting:
            _, stuck = await asyncio.wait(waiting, timeout=ABORT_SECONDS)
            for task in stuck:
                task.cancel()
            await asyncio.wait(waiting)
        for task in working:
            if task.done() and not task.cancelled():
                task.exception()  # seen, or that of a task which was ended because of another one
        for call in self._calls.values():
            await call.aborted()

    def _out_of_time(self) -> RunError:
        late = [name for name in self._plans if not self._ended[name].is_set()]
        message = f"the run did not end within {self._settings.timeout:g} s; not ended: {', '.join(late)}"
        return RunError(kind=ErrorKind.TIMEOUT, message=message)

    def _record(self, status: Literal["ok", "failed", "cancelled"], error: RunError | None, start: float) -> Record:
        ended = {name: call.output.text for name, call in self._calls.items() if self._ended[name].is_set()}
        return Record(
            outputs=output_values(self._program.workflow, self._inputs, ended),
            tasks={name: call.record() for name, call in self._calls.items()},
            run=RunInfo(
                id=self.id,
                index=self._index,
                workflow=self._program.workflow.name,
                status=status,
                error=error,
                start=start,
                end=start + self._seconds(),
                settings=self._settings,
            ),
        )

    def _tell_end(self, record: Record, error: RunError | None) -> None:
        if error is None:
            self._emit(RunFinished(self.id, record))
            return
        for name, plan in self._plans.items():
            if not self._ended[name].is_set():
                own = (
                    error if error.task == name else RunError(task=name, kind=ErrorKind.CANCELLED, message="cancelled")
                )
                self._emit(TaskFailed(self.id, name, plan.variable, own, self._seconds()))
        self._emit(RunFailed(self.id, record, error))
