"""From the steps of an engine and the streams of its clients to what an arm did."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.model_work import Piece, operations
from sglang_ext.bench.recorded_run import RecordedRun, RecordedTask
from sglang_ext.bench.recorded_step import RecordedStep
from sglang_ext.bench.repetition import Repetition
from sglang_ext.bench.run_work import RunStreams
from sglang_ext.bench.step_log import End, Launch
from sglang_ext.bench.workload.job import Job
from sglang_ext.driver.errors import EngineError
from sglang_ext.tasks.hint import request_id

_NEVER = Launch(launch=math.inf, decodes=0, chunks=())

Done = tuple[Job, float, RunStreams]
"""A run, when it was submitted (seconds, monotonic), and what came of it."""


def token_times(ends: Sequence[End]) -> dict[str, list[float]]:
    """When each token of each request left: the end of its step, by the request's rid."""
    found: dict[str, list[float]] = {}
    for end in ends:
        for rid, tokens in end.tokens.items():
            found.setdefault(rid, []).extend([end.end] * tokens)
    return found


def recorded(done: Done, times: Mapping[str, Sequence[float]]) -> RecordedRun:
    """Raises EngineError if the steps gave another number of tokens than the client received."""
    job, submitted, streams = done
    tasks = []
    for name, plan in streams.work.plans.items():
        stamps = times.get(request_id(streams.run, plan.index), ())
        got = len(streams.by_task[name].ids)
        if len(stamps) != got:
            raise EngineError(f"the engine's steps gave {len(stamps)} tokens to task {name!r}, its client got {got}")
        tasks.append(RecordedTask(name=name, upstream=plan.upstream, token_s=tuple(stamps)))
    return RecordedRun(index=job.index, workload=job.workload, submitted_s=submitted, tasks=tuple(tasks))


def steps_of(launches: Sequence[Launch], ends: Sequence[End], lag: int) -> list[RecordedStep]:
    """A step lasts until the next one is launched or, if the engine had nothing to do then, until its results left.

    Args:
        lag: steps between a launch and the time in which it runs: 1 where one is formed while the device runs another.
    """
    own_end = {end.step: end.end for end in ends}
    found: list[RecordedStep] = []
    for index, launch in enumerate(launches):
        end = own_end.get(launch.step, math.inf)
        begin, after = (each.launch for each in (*launches[index + lag : index + lag + 2], *[_NEVER] * 2)[:2])
        # Where nothing follows, it runs once the one before has ended.
        start = begin if begin < end else max(launch.launch, found[-1].end_s if found else 0.0)
        if min(end, after) < math.inf:
            found.append(_step(launch, start, min(end, after)))
    return found


def _step(launch: Launch, start_s: float, end_s: float) -> RecordedStep:
    return RecordedStep(
        start_s=start_s,
        end_s=end_s,
        rows=launch.decodes,
        tokens=sum(tokens for _, tokens in launch.chunks),
        kv=launch.kv,
        attention=sum(tokens * (prefix + tokens / 2) for prefix, tokens in launch.chunks),
        waiting=launch.waiting,
        pieces=len(launch.chunks),
    )


def repetition(
    done: Sequence[Done],
    prompts: Sequence[Sequence[int]],
    launches: Sequence[Launch],
    ends: Sequence[End],
    lag: int,
) -> Repetition:
    """Args: prompts: the complete one of every task. lag: as of `steps_of`."""
    times = token_times(ends)
    steps = steps_of(launches, ends, lag)
    return Repetition(
        runs=tuple(recorded(each, times) for each in done),
        steps=tuple(steps),
        computed=sum(step.tokens for step in steps),
        needed=sum(map(len, prompts)),
        kv_high=max(launch.held for launch in launches),
    )


def complete_prompts(done: Sequence[Done]) -> list[list[int]]:
    return [streams.prefix(plan, 1)[0] for _, _, streams in done for plan in streams.work.plans.values()]


def distinct(prompts: Sequence[Sequence[int]]) -> int:
    """Tokens of prompts without what they have in common with another one's beginning."""
    ordered = sorted(map(list, prompts))
    return sum(map(len, ordered)) - sum(_common(a, b) for a, b in pairwise(ordered))


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def all_operations(launches: Sequence[Launch], size: ModelSize) -> float:
    """Of all steps. The rows of a decode batch count with their mean context, in which attention is linear."""
    return float(sum(operations(_pieces(launch), size) for launch in launches))


def _pieces(launch: Launch) -> list[Piece]:
    chunks = [Piece(prefix, tokens) for prefix, tokens in launch.chunks]
    if not launch.decodes:
        return chunks
    context = (launch.kv - sum(prefix for prefix, _ in launch.chunks)) // launch.decodes
    return [*[Piece(context, 1)] * launch.decodes, *chunks]


def lateness(done: Sequence[Done], times: Mapping[str, Sequence[float]]) -> list[float]:
    """Seconds from the end of each token's step to its arrival at the client."""
    return [
        came - left
        for _, _, streams in done
        for name, plan in streams.work.plans.items()
        for left, came in zip(times[request_id(streams.run, plan.index)], streams.by_task[name].stamps, strict=True)
    ]


def output_digest(streams: RunStreams) -> str:
    outputs = str([(name, stream.ids) for name, stream in sorted(streams.by_task.items())])
    return hashlib.sha256(outputs.encode()).hexdigest()[:16]
