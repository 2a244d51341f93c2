"""The figures of all arms at one load, measured or simulated."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.fluid import FluidLimit
from sglang_ext.bench.run_figures import Gaps, RunFigures
from sglang_ext.bench.spread import Ratio

DEFAULT = "default/plain"
"""Stock's default with the plain client."""


class EngineFigures(BaseModel):
    """What only a real engine has.

    Args:
        plan_share: share of the time of its steps that the scheduler took to form them.
        matrix_share: share of the machine's measured matrix rate that the operations of its steps come to.
        again_share: prefill tokens that were computed though they had been before, over those that had to be.
        late: seconds from the end of a token's step to the token's arrival at the client.
        client_share: processor time of the process with the clients, over the repetitions' time.
        others: processors that processes outside of the measurement kept busy, on average; None where not known.
        same_output: share of runs whose outputs are those of the first arm; None for it itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan_share: float
    matrix_share: float
    again_share: float
    late: Gaps
    client_share: float
    others: float | None
    same_output: float | None


class ArmFigures(BaseModel):
    """One arm.

    Args:
        viable: its completion P95 is within 1.25 times the best stock's, and it keeps the TTFT level if a stock does.
        steps: how many there were. rows: decodes of a step on average.
        interference: decode rows of a step on average, times tasks per token.
        computed_share: prefill tokens computed, over those of all prompts; the prefix cache makes it less than 1.
        kv_high: share of the KV that was held at most.
        fluid: the fluid limit of its own steps.
        ratios: of figures to the best stock setting's, by baseline.
        engine: None where it was simulated.
    """

    model_config = ConfigDict(frozen=True)

    stock: bool
    viable: bool
    figures: RunFigures
    steps: int
    rows: float
    interference: float
    computed_share: float
    kv_high: float
    fluid: FluidLimit | None
    ratios: dict[str, dict[str, Ratio]]
    engine: EngineFigures | None = None


class LoadResult(BaseModel):
    """One load.

    Args:
        rate: runs per second; None: closed loop.
        baselines: for each the stock arm that is best, by figure. `envelope`: of all viable arms; `plain`, `prewarm`:
            of the viable ones with such a client; `default`: stock's default with the plain one.
    """

    model_config = ConfigDict(frozen=True)

    load: str
    rate: float | None
    baselines: dict[str, dict[str, str]]
    arms: dict[str, ArmFigures]


def with_default(names: Sequence[str]) -> list[str]:
    """Ratios to stock's default need it."""
    return list(dict.fromkeys([DEFAULT, *names]))


def rate_text(rate: float | None) -> str:
    """A load's rate in words. Args: rate: runs per second; None: closed loop."""
    return "closed loop" if rate is None else f"{rate:g} runs/s"
