"""Three ways to run a run's tasks: held by the engine, and two clients that send each when its inputs are there."""

from __future__ import annotations

import secrets
from typing import Protocol

from sglang_ext.bench.run_work import RunStreams, RunWork, forced_sampling
from sglang_ext.bench.together import together
from sglang_ext.bench.token_stream import TokenSource, TokenStream
from sglang_ext.driver.engine_client import GenerateRequest
from sglang_ext.driver.prompts import TaskPlan
from sglang_ext.driver.requests import complete_request, held_request
from sglang_ext.tasks.hint import new_run_id

PREWARM_TOKENS = 16


class RunClient(Protocol):
    async def run(self, source: TokenSource, work: RunWork) -> RunStreams:
        """Run it to its end. Raises EngineError if a request fails or gives another number of tokens."""


class HeldClient:
    """Submits all tasks at once, as Grape's driver does; the engine completes their prompts."""

    async def run(self, source: TokenSource, work: RunWork) -> RunStreams:
        streams = RunStreams(new_run_id(), work)
        async with together() as tasks:
            for name, plan in work.plans.items():
                request = work.sampled(name, held_request(streams.run, plan, len(work.plans)))
                tasks.create_task(streams.by_task[name].read(source, request))
        return streams


class PlainClient:
    """Sends each task when its inputs are complete."""

    async def run(self, source: TokenSource, work: RunWork) -> RunStreams:
        streams = RunStreams(new_run_id(), work)
        async with together() as tasks:
            for plan in work.plans.values():
                tasks.create_task(self._task(source, streams, plan))
                if plan.upstream:
                    tasks.create_task(self.before(source, streams, plan))
        return streams

    async def before(self, source: TokenSource, streams: RunStreams, plan: TaskPlan) -> None:
        """What is sent of a task before its inputs are complete: nothing."""

    async def _task(self, source: TokenSource, streams: RunStreams, plan: TaskPlan) -> None:
        for up in plan.upstream:
            await streams.by_task[up].wait_for_end()
        request = complete_request(streams.run, plan, streams.finished())
        await streams.by_task[plan.name].read(source, streams.work.sampled(plan.name, request))


class PrewarmClient(PlainClient):
    """The plain client, which also fills the prefix cache while upstreams write.

    Once all upstreams of a task have begun it sends the task's known prefix, then the longer one after each further
    `every` tokens, as requests for no output. One is under way at a time for a task, since two would compute the
    same tokens twice. When the last upstream ends the task is sent at once.
    """

    def __init__(self, every: int = PREWARM_TOKENS) -> None:
        self._every = every

    async def before(self, source: TokenSource, streams: RunStreams, plan: TaskPlan) -> None:
        for up in plan.upstream:
            await streams.by_task[up].wait_for(1)
        sent = 0
        while not all(streams.by_task[up].ended for up in plan.upstream):
            ids, writer = streams.prefix(plan, self._every)
            if len(ids) > sent:
                sent = len(ids)
                await TokenStream("prewarm", 0).read(source, _no_output(ids))
            elif writer is not None:
                stream = streams.by_task[writer]
                await stream.wait_for((len(stream.ids) // self._every + 1) * self._every)


def _no_output(ids: list[int]) -> GenerateRequest:
    return GenerateRequest(secrets.token_hex(16), ids, forced_sampling(0))
