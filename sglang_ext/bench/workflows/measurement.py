"""The measurement of one cell on a running engine."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import httpx

from sglang_ext.bench.clients import RunClient
from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.processor_time import ProcessorTime
from sglang_ext.bench.step_engine import StepEngine
from sglang_ext.bench.step_log import End, Launch, StepLog
from sglang_ext.bench.workflows.cell import Cell, CellKey
from sglang_ext.bench.workflows.load import LoadRun
from sglang_ext.bench.workflows.observation import (
    Done,
    all_operations,
    complete_prompts,
    distinct,
    lateness,
    output_digest,
    repetition,
    token_times,
)
from sglang_ext.bench.workflows.prepared import Prepared
from sglang_ext.driver.errors import EngineError
from sglang_ext.tasks.hint import request_id

# An engine is at rest soon after its last token; what it still has in hand may take some steps more.
_REST_SECONDS = 15.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Measurement:
    """Args:
    engine: connected.
    url: of its server.
    """

    engine: StepEngine
    url: str
    size: ModelSize

    async def cell(self, key: CellKey, client: RunClient, prepared: Prepared, in_flight: int | None) -> Cell:
        """Measure with an empty prefix cache. Args: in_flight: None: the runs come at their arrivals."""
        await self.flush()
        self.engine.log.restart()
        before, begin, processor = ProcessorTime.now(), time.monotonic(), time.process_time()
        done = await self.load(client, prepared, in_flight)
        end, client_s, after = time.monotonic(), time.process_time() - processor, ProcessorTime.now()
        launches, ends = await _all_lines(self.engine.log, done)
        prompts = complete_prompts(done)
        return Cell(
            key=key,
            repetition=repetition(done, prompts, launches, ends, self.engine.log.lag),
            seconds=end - begin,
            plan_s=sum(launch.plan for launch in launches),
            operations=all_operations(launches, self.size),
            distinct=distinct(prompts),
            late=tuple(round(late, 6) for late in lateness(done, token_times(ends))),
            client_s=client_s,
            others_s=None if before is None or after is None else after.others_since(before),
            prompts=prepared.digest,
            outputs=tuple(output_digest(streams) for _, _, streams in done),
        )

    async def load(self, client: RunClient, prepared: Prepared, in_flight: int | None) -> list[Done]:
        runs = LoadRun(client, self.engine.source, prepared)
        return await (runs.at_arrivals() if in_flight is None else runs.closed(in_flight))

    async def flush(self) -> None:
        """Empty the prefix cache. Raises EngineError if the engine does not come to rest."""
        until = time.monotonic() + _REST_SECONDS
        async with httpx.AsyncClient(timeout=_REST_SECONDS) as http:
            while True:
                answer = await http.post(f"{self.url}/flush_cache")
                if answer.status_code == 200:
                    return
                if time.monotonic() > until:
                    raise EngineError(f"the engine at {self.url} does not come to rest: {answer.text[:200]}")
                await asyncio.sleep(_POLL_SECONDS)


async def _all_lines(log: StepLog, done: list[Done]) -> tuple[list[Launch], list[End]]:
    """The steps of some runs. A client may hear of its last token before the end of that step is written."""
    wanted = {
        request_id(streams.run, plan.index): len(streams.by_task[name].ids)
        for _, _, streams in done
        for name, plan in streams.work.plans.items()
    }
    until = time.monotonic() + _REST_SECONDS
    while True:
        launches, ends = log.lines()
        times = token_times(ends)
        if all(len(times.get(rid, ())) >= tokens for rid, tokens in wanted.items()) or time.monotonic() > until:
            return launches, ends
        await asyncio.sleep(_POLL_SECONDS)
