"""A cell: one arm on one workload at one load in one repetition."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.repetition import Repetition


class CellKey(BaseModel):
    """Args: load: its name. repetition: from 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm: str
    workload: str
    load: str
    repetition: int

    def __str__(self) -> str:
        return f"{self.workload}, {self.load}, {self.arm}, repetition {self.repetition}"


class Cell(BaseModel):
    """What was measured in it; times in seconds.

    Args:
        seconds: from the first arrival to the last token's arrival at the client.
        plan_s: that the scheduler took to form the steps.
        operations: of all steps, floating point.
        distinct: prefill tokens with an endless prefix cache.
        late: from the end of each token's step to its arrival at the client.
        client_s: processor time of the process with the clients.
        others_s: processor time of processes that have nothing to do with the measurement; None where it is not known.
        prompts: a digest of everything that the runs were given.
        outputs: a digest of each run's outputs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: CellKey
    repetition: Repetition
    seconds: float
    plan_s: float
    operations: float
    distinct: int
    late: tuple[float, ...]
    client_s: float
    others_s: float | None
    prompts: str
    outputs: tuple[str, ...]
