"""The record of `grape bench numerics`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.bench.machine import Machine
from sglang_ext.bench.numerics.answers import Answer, Streamed
from sglang_ext.bench.numerics.arms import MONOLITHIC, PAIRS, STREAMED
from sglang_ext.bench.numerics.pair import Pair, Share, compare, flip_ratio, flips
from sglang_ext.bench.spread import Ratio

KIND: Literal["grape.bench.numerics/1"] = "grape.bench.numerics/1"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Seeds(_Model):
    """What a seed reproduces of a sampled output.

    Args:
        again: outputs that come out alike when the monolithic prompt is sent once more.
        streamed: outputs that the streamed and the monolithic prompt have alike.
    """

    again: Share
    streamed: Share


class DtypeResult(_Model):
    """Args:
    prompt_tokens, early_tokens, early_chunks: of a streamed prompt on average; early: in KV before the writer's last
        token was known.
    outputs: ids, by arm and prompt.
    pairs: what was compared with what.
    flip_ratio: the rate of outputs that differ between streamed and monolithic over that between the two chunkings;
        None where these two never differ.
    """

    dtype: str
    prompt_tokens: float
    early_tokens: float
    early_chunks: float
    outputs: dict[str, list[list[int]]]
    pairs: list[Pair]
    flip_ratio: Ratio | None
    seeds: Seeds

    @classmethod
    def of(
        cls, dtype: str, streamed: Sequence[Streamed], plain: Mapping[str, Sequence[Answer]], seeds: Seeds
    ) -> DtypeResult:
        """Args: plain: answers of the other arms to the streamed prompts."""
        answers = {STREAMED: [s.answer for s in streamed], **plain}
        changed = flips(answers[STREAMED], answers[MONOLITHIC])
        first, second = PAIRS[-1]
        number = len(streamed)
        return cls(
            dtype=dtype,
            prompt_tokens=sum(len(s.prompt) for s in streamed) / number,
            early_tokens=sum(s.early_tokens for s in streamed) / number,
            early_chunks=sum(s.early_chunks for s in streamed) / number,
            outputs={name: [answer.ids for answer in own] for name, own in answers.items()},
            pairs=[compare(arm, other, answers[arm], answers[other]) for arm, other in PAIRS],
            flip_ratio=flip_ratio(changed, flips(answers[first], answers[second])),
            seeds=seeds,
        )


class NumericsRecord(_Model):
    """One run of the benchmark.

    Args:
        started, seconds: UTC, ISO 8601, and how long it took, engines' starts included.
        load: the machine's load average over a minute before the engines were started, and at the end.
        settings: prompts, tokens and where they come from.
        arms: what each one is.
    """

    kind: Literal["grape.bench.numerics/1"] = KIND
    started: str
    seconds: float
    machine: Machine
    load: tuple[float, float]
    versions: dict[str, str]
    model: str
    settings: dict[str, Any]
    arms: dict[str, str]
    engines: dict[str, EngineRecord]
    results: list[DtypeResult]
