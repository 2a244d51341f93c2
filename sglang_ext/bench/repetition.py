"""What one arm did in one repetition, on an engine or in the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.recorded_run import RecordedRun
from sglang_ext.bench.recorded_step import RecordedStep


class Repetition(BaseModel):
    """Args:
    runs: in the order of their numbers.
    steps: every step, in order.
    computed: prefill tokens in all.
    needed: prefill tokens if none were computed twice and nothing were found in the cache.
    kv_high: the most tokens of KV that were held.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: tuple[RecordedRun, ...]
    steps: tuple[RecordedStep, ...]
    computed: int
    needed: int
    kv_high: int


def interference(repetitions: Sequence[Repetition]) -> float:
    """Decode rows of a step on average, times tasks per token: the share of tokens that a prefill holds up."""
    decodes = [step.rows for repetition in repetitions for step in repetition.steps if step.rows]
    tasks = sum(len(run.tasks) for repetition in repetitions for run in repetition.runs)
    tokens = sum(run.tokens for repetition in repetitions for run in repetition.runs)
    return sum(decodes) / len(decodes) * tasks / tokens if decodes else 0.0
