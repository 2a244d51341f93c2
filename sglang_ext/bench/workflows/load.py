"""Submits runs to an engine: at their arrivals, or so many at once."""

from __future__ import annotations

import asyncio
import time

from sglang_ext.bench.clients import RunClient
from sglang_ext.bench.run_work import RunWork
from sglang_ext.bench.together import together
from sglang_ext.bench.token_stream import TokenSource
from sglang_ext.bench.workflows.observation import Done
from sglang_ext.bench.workflows.prepared import Prepared
from sglang_ext.bench.workload.job import Job


class LoadRun:
    """All runs of a repetition on one engine, from one process and one event loop."""

    def __init__(self, client: RunClient, source: TokenSource, prepared: Prepared) -> None:
        self._client = client
        self._source = source
        self._prepared = prepared
        self._done: list[Done] = []

    async def at_arrivals(self) -> list[Done]:
        """Each run at its time, which counts as the one at which it was submitted. Raises EngineError."""
        begin = time.monotonic()
        async with together() as tasks:
            for job, work in self._pairs():
                tasks.create_task(self._arriving(job, work, begin + job.arrival_s))
        return self._in_order()

    async def closed(self, in_flight: int) -> list[Done]:
        """So many runs at once, the next one when one ends. Raises EngineError."""
        queue = iter(self._pairs())

        async def work_off() -> None:
            for job, work in queue:
                await self._run(job, work, time.monotonic())

        async with together() as tasks:
            for _ in range(in_flight):
                tasks.create_task(work_off())
        return self._in_order()

    async def _arriving(self, job: Job, work: RunWork, submitted: float) -> None:
        await asyncio.sleep(max(0.0, submitted - time.monotonic()))
        await self._run(job, work, submitted)

    async def _run(self, job: Job, work: RunWork, submitted: float) -> None:
        self._done.append((job, submitted, await self._client.run(self._source, work)))

    def _pairs(self) -> list[tuple[Job, RunWork]]:
        return list(zip(self._prepared.jobs, self._prepared.works, strict=True))

    def _in_order(self) -> list[Done]:
        return sorted(self._done, key=lambda done: done[0].index)
