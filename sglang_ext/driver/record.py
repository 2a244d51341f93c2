"""The record of a run: one JSON object, the same for every engine and every way to start a run.

docs/record.md explains the fields, docs/grape.record.schema.json is their JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sglang_ext.driver.errors import RunFailedError


class ErrorKind(StrEnum):
    """Why a task failed; docs/language.md uses the same words."""

    ERROR = "error"
    TIMEOUT = "timeout"
    TOO_LONG = "too_long"
    CANCELLED = "cancelled"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunError(_Model):
    """What ended a run. `task` is None where no single task is to blame."""

    task: str | None = Field(default=None, description="The task that failed; null where no single task is to blame.")
    kind: ErrorKind
    message: str

    def text(self) -> str:
        """One line for people."""
        return f"task {self.task}: {self.message}" if self.task else self.message


class TopLogprob(_Model):
    id: int
    logprob: float


class TokenLogprob(_Model):
    """A token that the model produced, with the alternatives that were asked for."""

    id: int
    logprob: float
    top: list[TopLogprob] = []


class Objective(_Model):
    bound_s: float = Field(
        gt=0, description="Seconds; a bound in decode steps with the engine's unloaded step at the task's end."
    )
    met: bool


class TaskSlo(_Model):
    """Latency of a task on the engine's clock, and whether its objectives were met; null where it has none."""

    ttft: Objective | None
    tbt: Objective | None
    ttft_s: float | None = Field(description="Seconds from the complete prompt to the first token; null without one.")
    worst_gap_s: float | None = Field(description="The longest time between two tokens; null with less than two.")

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> TaskSlo:
        """What the engine's figures of a finished task say."""
        ttft_s, worst_gap_s = figures["ttft_s"], figures["worst_gap_s"]
        return cls(
            ttft=_objective(figures["ttft_bound_s"], ttft_s),
            tbt=_objective(figures["tbt_bound_s"], worst_gap_s),
            ttft_s=ttft_s,
            worst_gap_s=worst_gap_s,
        )


def _objective(bound_s: float | None, took_s: float | None) -> Objective | None:
    return None if bound_s is None else Objective(bound_s=bound_s, met=took_s is None or took_s <= bound_s)


class TaskRecord(_Model):
    """One task of a run. What a task that failed or never ran did not reach is null."""

    output_text: str = Field(description="The output as text: `output_ids` decoded.")
    output_ids: list[int] = Field(description="What a reader of the output gets: no EOS, no matched stop string.")
    prompt_tokens: int | None = Field(ge=0, description="Length of the whole prompt in tokens.")
    cached_tokens: int | None = Field(ge=0, description="Prompt tokens that were in the KV cache before the run.")
    early_tokens: int = Field(
        ge=0, description="Prompt tokens prefilled before the task's last upstream token appeared; 0 without streaming."
    )
    early_chunks: int = Field(ge=0, description="How many pieces of streamed outputs are among the early tokens.")
    first_token_s: float | None = Field(description="Seconds from the run's submission to the task's first token.")
    end_s: float | None = Field(description="Seconds from the run's submission to the task's end.")
    finish_reason: str | None = Field(description="`stop`, `length`, `abort`; null if the task never ended.")
    slo: TaskSlo | None = Field(description="Null for a task that did not finish, and with streaming off.")
    logprobs: list[TokenLogprob] | None = Field(
        default=None,
        description="With option `logprobs`: every token that the model produced, a closing EOS or stop included.",
    )


class RunSettings(_Model):
    """What the run was made with, so that two records can be compared."""

    streaming: Literal["on", "static", "off"]
    edge_weight: int = Field(ge=1, description="Tokens per streamed chunk.")
    model: str
    engine: str = Field(description="`embedded`, or the URL of the server.")
    sglang: str = Field(description="SGLang's version.")
    grape: str | None = Field(description="The plugin's version in the engine; null on an engine without it.")
    profile: str | None = Field(
        description="The file of measured costs that the engine's policy started from; null without one."
    )
    timeout: float | None = Field(description="Limit of the run in seconds.")


class RunInfo(_Model):
    id: str = Field(pattern="^[0-9a-f]{32}$")
    index: int = Field(ge=0, description="The run's place among those started together, from 0.")
    workflow: str
    status: Literal["ok", "failed", "cancelled"]
    error: RunError | None
    start: float = Field(description="Submission, in seconds since 1970 (UTC).")
    end: float = Field(description="End, in seconds since 1970 (UTC).")
    settings: RunSettings


class Record(_Model):
    """A run: its outputs by OutputVar, its tasks by name, and the run itself."""

    outputs: dict[str, str] = Field(description="Values of the OutputVars; of a failed run those that were reached.")
    tasks: dict[str, TaskRecord]
    run: RunInfo

    @property
    def ok(self) -> bool:
        return self.run.status == "ok"

    def raise_if_failed(self) -> None:
        """Raises RunFailedError unless the run ended well."""
        if self.run.error is not None:
            raise RunFailedError(self, self.run.error)

    def to_json(self) -> str:
        """One line of JSON."""
        return self.model_dump_json()


def json_schema() -> dict[str, Any]:
    """The JSON Schema that docs/grape.record.schema.json holds."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "grape.record/1",
        **Record.model_json_schema(mode="serialization"),
    }
