"""The two ways to submit a task: at once with holes, or with complete ids once its upstreams have ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from grape_dsl.task import Latency as Bound
from sglang_ext.driver.engine_client import GenerateRequest
from sglang_ext.driver.prompts import TaskPlan
from sglang_ext.driver.sampling import logprob_count, sampling_params
from sglang_ext.tasks.hint import Known, Latency, Slo, TaskHint, Timeouts, envelope, input_ids, request_id


class FinishedOutput(Protocol):
    def reader_ids(self, left: bool, right: bool) -> list[int]:
        """The ids for a reader that strips white space at these sides."""


def held_request(run: str, plan: TaskPlan, tasks: int) -> GenerateRequest:
    """The request of a task that the engine completes by itself.

    Args:
        tasks: how many tasks the run has.
    """
    timeout = plan.options.timeout
    hint = TaskHint(
        run=run,
        task=plan.name,
        index=plan.index,
        tasks=tasks,
        readers=list(plan.readers),
        segments=list(plan.segments),
        timeout=Timeouts(run=timeout.run, idle=timeout.idle) if timeout else Timeouts(),
        slo=_objectives(plan),
    )
    return _request(run, plan, input_ids(plan.segments), envelope(hint))


def complete_request(run: str, plan: TaskPlan, outputs: Mapping[str, FinishedOutput]) -> GenerateRequest:
    """The request of a task with all its ids, an ordinary one for the engine.

    Args:
        outputs: the finished outputs of the task's upstreams.
    """
    ids: list[int] = []
    for segment in plan.segments:
        ids += segment.ids if isinstance(segment, Known) else outputs[segment.task].reader_ids(*segment.sides)
    return _request(run, plan, ids, None)


def _request(run: str, plan: TaskPlan, ids: list[int], hint: dict[str, object] | None) -> GenerateRequest:
    return GenerateRequest(
        rid=request_id(run, plan.index),
        input_ids=ids,
        sampling=sampling_params(plan.name, plan.options),
        hint=hint,
        logprobs=logprob_count(plan.options),
    )


def _objectives(plan: TaskPlan) -> Slo | None:
    """The task's own objectives."""
    slo = plan.options.slo
    return None if slo is None else Slo(ttft=_latency(slo.ttft), tbt=_latency(slo.tbt))


def _latency(bound: Bound | None) -> Latency | None:
    return None if bound is None else Latency(seconds=bound.seconds, steps=bound.steps)
