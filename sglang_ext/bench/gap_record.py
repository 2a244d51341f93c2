"""The record of `grape bench gap`: everything that is needed to read it again."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.cell import Cell
from sglang_ext.bench.machine import Machine
from sglang_ext.bench.verdict import Verdict

KIND: Literal["grape.bench.gap/1"] = "grape.bench.gap/1"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EngineRecord(_Model):
    """An engine.

    Args:
        flags: of `sglang.launch_server`, without model and port.
        environment: variables that it was given beside the machine's.
        resolved: what SGLang made of the flags that matter here.
        plugin: the extension's settings in it; None: not loaded.
    """

    flags: list[str]
    environment: dict[str, str]
    resolved: dict[str, Any]
    plugin: dict[str, Any] | None


class ArmRecord(_Model):
    engine: str
    client: str
    stock: bool
    about: str


class Request(_Model):
    """Tokens of each chain beside those of the cell, and how chunks are cut.

    Args:
        start: A's prompt.
        suffix: B's text behind A's output.
        answer: B's output.
        edge_weight: tokens per streamed chunk.
        prewarm_every: tokens after which the client of `prewarm` sends a longer prefix.
    """

    start: int
    suffix: int
    answer: int
    edge_weight: int
    prewarm_every: int


class GapRecord(_Model):
    """One run of the benchmark.

    Args:
        started: UTC, ISO 8601.
        seconds: how long the measurement took, without the engines' start.
        load: the machine's load average over a minute before the engines were started, and at the end.
        clock: whose times the samples' are.
    """

    kind: Literal["grape.bench.gap/1"] = KIND
    started: str
    seconds: float
    machine: Machine
    load: tuple[float, float]
    versions: dict[str, str]
    model: str
    clock: Literal["client"] = "client"
    repetitions: int
    request: Request
    engines: dict[str, EngineRecord]
    arms: dict[str, ArmRecord]
    cells: list[Cell]
    verdicts: list[Verdict]
