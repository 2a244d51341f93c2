"""An engine whose scheduler writes its steps down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sglang_ext.bench.arms import EngineKind
from sglang_ext.bench.engine_setup import EngineSetup, Launch, connect
from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.bench.server import serve
from sglang_ext.bench.step_log import StepLog
from sglang_ext.driver.errors import EngineError
from sglang_ext.driver.server_engine import ServerEngine

_MODULE = "sglang_ext.bench.step_server"


@dataclass(frozen=True, slots=True)
class StepEngine:
    """Args: threads: of torch in its scheduler."""

    source: ServerEngine
    log: StepLog
    record: EngineRecord
    threads: int


@dataclass(frozen=True, slots=True)
class RunningStepEngine:
    """Its processes run; nobody is connected."""

    kind: EngineKind
    launch: Launch
    url: str
    steps: Path

    @classmethod
    @contextmanager
    def start(
        cls,
        setup: EngineSetup,
        kind: EngineKind,
        folder: Path,
        waiting: Callable[[], None],
        profiled: Sequence[int] = (),
    ) -> Iterator[RunningStepEngine]:
        """Start it, until the block ends.

        Args:
            folder: takes its log and its steps.
            profiled: sizes of decode batches that are profiled when they first decode for long enough.

        Raises:
            EngineError: it does not start.
        """
        launch, steps = setup.launch(kind), folder / f"{kind.name}.steps"
        flags = ["--model-path", setup.model, *launch.flags]
        module = (_MODULE, str(steps), ",".join(map(str, profiled)))
        with serve(flags, launch.environment, folder / f"{kind.name}.log", waiting, module) as url:
            yield cls(kind, launch, url, steps)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[StepEngine]:
        """Raises EngineError if the engine is not what it should be."""
        connected = await connect(self.kind, self.launch, self.url)
        try:
            log = StepLog(self.steps)
            log.restart()
            # A server answers when it has tried itself out.
            if log.threads is None:
                raise EngineError(f"the engine {self.kind.name!r} has written no step to {self.steps}")
            yield StepEngine(connected.source, log, connected.record, log.threads)
        finally:
            await connected.source.close()
