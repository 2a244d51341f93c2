"""Engines that are alive together: started one after the other, each ready to be measured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sglang_ext.bench.arms import EngineKind
from sglang_ext.bench.engine_setup import EngineSetup
from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.step_engine import RunningStepEngine
from sglang_ext.bench.workflows.measurement import Measurement


@dataclass(frozen=True, slots=True)
class EngineGroup:
    """Args: running: by the name of their kind."""

    running: Mapping[str, RunningStepEngine]
    model: str

    @classmethod
    @contextmanager
    def start(
        cls, setup: EngineSetup, kinds: Sequence[EngineKind], folder: Path, starting: Callable[[str], None]
    ) -> Iterator[EngineGroup]:
        """Start them, until the block ends.

        Args:
            folder: takes the logs and the steps of all.

        Raises:
            EngineError: one does not start.
        """
        with ExitStack() as stack:
            # One after the other: an engine on an accelerator takes its memory from what is free when it starts.
            running = {
                kind.name: stack.enter_context(
                    RunningStepEngine.start(setup, kind, folder, partial(starting, kind.name))
                )
                for kind in kinds
            }
            yield cls(running, setup.model)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[dict[str, Measurement]]:
        """By the name of their kind. Raises EngineError if one is not what it should be."""
        async with AsyncExitStack() as stack:
            found = {}
            for name, running in self.running.items():
                engine = await stack.enter_async_context(running.connected())
                size = ModelSize.of(self.model, str(engine.record.resolved["dtype"]))
                found[name] = Measurement(engine, running.url, size)
            yield found
