"""Engine: the runtime's front door in Python. Runs workflows on SGLang, from any thread or event loop."""

from __future__ import annotations

import asyncio
import os
import queue
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from grape_dsl.compiler import CompiledWorkflow
from grape_dsl.workflow import Workflow
from sglang_ext.driver.client_choice import new_client
from sglang_ext.driver.embedded_engine import EmbeddedEngine, QuitSignal
from sglang_ext.driver.engine_client import EngineClient, EngineInfo
from sglang_ext.driver.engine_log import EngineLog
from sglang_ext.driver.errors import EngineError, InputError
from sglang_ext.driver.events import Event
from sglang_ext.driver.loop_thread import Job, LoopThread
from sglang_ext.driver.plugin_proof import require_plugin
from sglang_ext.driver.policy_choice import policy_variables
from sglang_ext.driver.record import Record
from sglang_ext.driver.run_factory import RunFactory, Streaming

# How long an interrupted start may go on, and how long an end; what they leave ends with this process.
_PATIENCE = 5.0
_END_SECONDS = 60.0


class Engine:
    """A running engine; use it in a `with` block, which starts and ends it.

    Args:
        model: a folder or a Hugging Face name; None: the embedded model, fetched on first use.
        url: an SGLang server that runs already; then no engine is started here.
        tokenizer: a folder, if the tokenizer does not lie with the model.
        streaming: None: what the engine is set to (GRAPE_STREAMING, `on` without it). `static`: only the
            fixed start of a prompt is prefilled early. `off`: a task is submitted when its inputs are
            complete.
        edge_weight: tokens per streamed chunk; None: the compiler's default.
        policy: the scheduling policy's name (docs/running.md); None: GRAPE_POLICY, or the default.
        policy_off: parts of it that are switched off, a comma list; None: GRAPE_POLICY_OFF, or none.
        plugin: False allows an engine without the Grape plugin; it takes `streaming="off"` only.
        log: what SGLang prints goes there; None: SGLang prints errors only.
        client: an engine of another kind.
        settings: SGLang's `ServerArgs`, by name.

    Raises:
        InputError: arguments that contradict each other.
        EngineError: the engine does not start, is not reachable or lacks the plugin.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        url: str | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        streaming: Streaming | None = None,
        edge_weight: int | None = None,
        policy: str | None = None,
        policy_off: str | None = None,
        plugin: bool = True,
        log: EngineLog | None = None,
        client: EngineClient | None = None,
        **settings: Any,
    ) -> None:
        if not plugin and streaming != "off":
            raise InputError("an engine without the plugin runs workflows with streaming = 'off' only")
        if edge_weight is not None and edge_weight < 1:
            raise InputError(f"edge_weight is at least 1 token, not {edge_weight}")
        if url is not None and not (policy is None and policy_off is None):
            raise InputError(
                f"the policy of the server {url} is set where it is started, with GRAPE_POLICY and GRAPE_POLICY_OFF"
            )
        own = policy_variables(policy, policy_off) if url is None and client is None else {}
        self._streaming = streaming
        self._edge_weight = edge_weight
        self._plugin = plugin
        self._log = log
        self._client = client or new_client(
            None if model is None else os.fspath(model),
            url,
            None if tokenizer is None else os.fspath(tokenizer),
            settings if url or log else {"log_level": "error", **settings},
            own | ({"GRAPE_STREAMING": streaming} if streaming in ("on", "static") else {}),
        )
        self._loop: LoopThread | None = None
        self._quit: QuitSignal | None = None
        self._factory: RunFactory | None = None

    # Life

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the engine, 10 to 20 seconds for an embedded one, and see that the plugin is on."""
        if self._loop is not None:
            raise EngineError("the engine is running already")
        client = self._client
        self._loop = LoopThread()
        if isinstance(client, EmbeddedEngine):
            self._quit = QuitSignal(client)
            self._quit.open()
        try:
            job = self._loop.submit(client.start())
            info = job.result(stop=client.interrupt, patience=_PATIENCE)
            if self._plugin:
                require_plugin(info.name, info.states)
            self._factory = RunFactory(client, info, self._streaming, self._edge_weight)
        except BaseException as error:
            if isinstance(error, EngineError) and self._log is not None:
                error.log_tail = self._log.tail()
            self.close()
            raise

    def close(self) -> None:
        """End the engine and its processes; runs that are not done are cancelled. Safe to call twice."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        started, self._factory = self._factory is not None, None
        job = loop.submit(self._client.close())
        ended = job.join(_END_SECONDS if started else _PATIENCE)
        loop.close(_PATIENCE if ended else 0.0)
        if self._quit is not None:
            self._quit.close()
        if ended:
            job.result()

    @property
    def info(self) -> EngineInfo:
        """What runs; raises EngineError if nothing does."""
        return self._running()[1].info

    def states(self) -> tuple[Mapping[str, Any], ...]:
        """The internal state of each of the engine's schedulers, now."""
        loop, factory = self._running()
        return loop.submit(factory.client.states()).result()

    # Runs

    def run(
        self,
        workflow: Workflow | CompiledWorkflow,
        inputs: Mapping[str, str] | None = None,
        /,
        *,
        timeout: float | None = None,
        index: int = 0,
        **named: str,
    ) -> Record:
        """Run `workflow` and wait for its record. Works in any thread.

        Args:
            inputs, named: values of InputVars.
            timeout: limit of the run in seconds.
            index: the run's place among those started together, for its record.

        Raises:
            DiagnosticError: the workflow has errors.
            InputError: inputs are missing or unknown.
            RunFailedError: the run failed; it has the record.
            EngineError: the engine is gone.
        """
        record = self._begin(workflow, inputs, named, timeout, index, lambda event: None).result()
        record.raise_if_failed()
        return record

    async def arun(
        self,
        workflow: Workflow | CompiledWorkflow,
        inputs: Mapping[str, str] | None = None,
        /,
        *,
        timeout: float | None = None,
        index: int = 0,
        **named: str,
    ) -> Record:
        """As `run`, from any event loop. Cancelling it ends the run's requests first."""
        record = await self._begin(workflow, inputs, named, timeout, index, lambda event: None).wait()
        record.raise_if_failed()
        return record

    async def stream(
        self,
        workflow: Workflow | CompiledWorkflow,
        inputs: Mapping[str, str] | None = None,
        /,
        *,
        timeout: float | None = None,
        index: int = 0,
        **named: str,
    ) -> AsyncIterator[Event]:
        """The events of a run as they happen; the last is RunFinished or RunFailed. Closing it cancels the run."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue[Event | None]()

        def emit(event: Event | None) -> None:
            loop.call_soon_threadsafe(events.put_nowait, event)

        job = self._begin(workflow, inputs, named, timeout, index, emit)
        job.add_done_callback(lambda: emit(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await job.wait()
        finally:
            await job.end()

    def stream_events(
        self,
        workflow: Workflow | CompiledWorkflow,
        inputs: Mapping[str, str] | None = None,
        /,
        *,
        timeout: float | None = None,
        index: int = 0,
        **named: str,
    ) -> Iterator[Event]:
        """As `stream`, without an event loop."""
        events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        job = self._begin(workflow, inputs, named, timeout, index, events.put)
        job.add_done_callback(lambda: events.put(None))
        try:
            while (event := events.get()) is not None:
                yield event
            job.result()
        finally:
            job.cancel()
            job.join()

    def _begin(
        self,
        workflow: Workflow | CompiledWorkflow,
        inputs: Mapping[str, str] | None,
        named: Mapping[str, str],
        timeout: float | None,
        index: int,
        emit: Callable[[Event], None],
    ) -> Job[Record]:
        loop, factory = self._running()
        run = factory.run(workflow, {**(inputs or {}), **named}, timeout=timeout, index=index, emit=emit)
        return loop.submit(run.execute())

    def _running(self) -> tuple[LoopThread, RunFactory]:
        if self._loop is None or self._factory is None:
            raise EngineError("the engine is not running; use it in a `with` block")
        return self._loop, self._factory
