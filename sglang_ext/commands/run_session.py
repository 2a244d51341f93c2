"""The runs of one `grape run`: some at once, their events to whoever shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from grape_dsl.compiler import CompiledWorkflow
from sglang_ext.commands.failures import say
from sglang_ext.commands.run_output import RunOutput
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.events import Event, RunFailed


class RunSession:
    """Runs one program on many inputs.

    Args:
        jobs: how many runs at once.
        timeout: limit of each run in seconds.
    """

    def __init__(
        self,
        engine: Engine,
        program: CompiledWorkflow,
        jobs: int,
        timeout: float | None,
        output: RunOutput,
    ) -> None:
        self.failed = False
        self._engine = engine
        self._program = program
        self._jobs = jobs
        self._timeout = timeout
        self._listeners: list[Callable[[Event], None]] = [output.take]

    def listen(self, listener: Callable[[Event], None]) -> None:
        self._listeners.append(listener)

    async def run_all(self, inputs: Sequence[Mapping[str, str]]) -> None:
        """Raises EngineError if the engine is gone; a run that fails is told and sets `failed`."""
        free = asyncio.Semaphore(self._jobs)
        try:
            async with asyncio.TaskGroup() as group:
                for index, values in enumerate(inputs):
                    group.create_task(self._run(index, values, free, several=len(inputs) > 1))
        except* Exception as errors:
            raise errors.exceptions[0] from None

    async def _run(self, index: int, values: Mapping[str, str], free: asyncio.Semaphore, *, several: bool) -> None:
        async with free:
            async for event in self._engine.stream(self._program, values, timeout=self._timeout, index=index):
                for listener in self._listeners:
                    listener(event)
                if isinstance(event, RunFailed):
                    self.failed = True
                    which = f"run {index} failed" if several else "the run failed"
                    say(f"{which} ({event.error.kind}): {event.error.text()}")
