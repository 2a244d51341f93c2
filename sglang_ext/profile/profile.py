"""The file of a profile: a fitted cost model, the measurements behind it, and the engine that it belongs to."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.profile.engine_key import EngineKey

KIND: Literal["grape.profile/1"] = "grape.profile/1"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Measurement(_Model):
    """Steps of one make-up.

    Args:
        setting: number of the setting in which they ran.
        visit: which one it was; a setting may come again.
        rows: sequences that decode.
        context: tokens of KV that those read, all together; the mean over the steps.
        pieces: of prompts, each (tokens in KV in front, tokens).
        seconds: of each step.
        held_out: the fit has not seen them.
    """

    setting: int = Field(ge=0)
    visit: int = Field(ge=0)
    rows: int = Field(ge=0)
    context: int = Field(ge=0)
    pieces: tuple[tuple[int, int], ...]
    seconds: tuple[float, ...] = Field(min_length=1)
    held_out: bool = False

    @property
    def load(self) -> Load:
        """As the cost model takes it."""
        return Load(rows=self.rows, kv=self.context).with_pieces(self.pieces)


class Profile(_Model):
    """One engine's cost of steps.

    The simulator reads `cost` and the engine's limits behind it, whatever else a file holds.

    Args:
        cost: F; its `errors` are the mean relative errors over the steps that were held out, by regime and `all`.
        noise: the same of a step against others of its make-up right before and after it.
        drift: the same of a step against those of its make-up at other times of the measurement. No model can be
            better than this.
        kv_tokens, chunk, running, overlap: the engine's pool, chunk size, running requests, and how its loop runs
            beside its steps.
        started: UTC.
        length_s: of the measurement, without the engine's start.
    """

    kind: Literal["grape.profile/1"] = KIND
    key: EngineKey
    cost: CostModel
    noise: dict[str, float]
    drift: dict[str, float]
    kv_tokens: int
    chunk: int
    running: int
    overlap: Literal["none", "device", "host"]
    started: str
    length_s: float
    measurements: tuple[Measurement, ...]

    @field_validator("cost", mode="before")
    @classmethod
    def _not_negative(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        try:
            return CostModel.from_dict(value)
        except TypeError as error:
            raise ValueError(str(error)) from None

    @property
    def error(self) -> float | None:
        """The mean relative error over all steps that were held out; None where none were."""
        return self.cost.errors.get("all")
