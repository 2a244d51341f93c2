"""The fluid limit: the gaps if prefill were spread evenly over the steps of a window, with the same work and F."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.quantities import Values
from sglang_ext.bench.recorded_step import RecordedStep
from sglang_ext.policy.cost_model import CostModel, Load

WINDOW_S = 20.0


class FluidLimit(BaseModel):
    """Seconds between two tokens of a row that decodes: a yardstick, no bound.

    In a window whose steps have equally many rows, and with an F that is convex in the prefill, no order of the same
    work has a smaller mean or a smaller largest gap. Percentiles can be smaller: all prefill in 4% of the steps leaves
    P95 without any. Nor does the mean hold where rows differ: prefill beside few rows delays fewer tokens.
    """

    model_config = ConfigDict(frozen=True)

    mean: float
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, steps: Sequence[RecordedStep], cost: CostModel, window_s: float = WINDOW_S) -> FluidLimit | None:
        """None where nothing decoded.

        Prefill counts where it ran while something decoded or waited to; what ran while nothing did delayed no token.
        """
        gaps: list[float] = []
        for window in _windows(steps, window_s):
            busy = [step for step in window if step.rows or step.waiting]
            decoding = [step for step in busy if step.rows]
            if not decoding:
                continue
            spread = Load(
                tokens=round(sum(step.tokens for step in busy) / len(decoding)),
                kv=round(sum(step.kv for step in busy) / len(decoding)),
                attention=sum(step.attention for step in busy) / len(decoding),
                pieces=round(sum(step.pieces for step in busy) / len(decoding)),
            )
            for step in decoding:
                gap = cost.time(replace(spread, rows=step.rows))
                gaps += [gap] * step.rows
        if not gaps:
            return None
        values = Values([gaps])
        return cls(
            mean=values.mean(),
            p50=values.percentile(0.5),
            p95=values.percentile(0.95),
            p99=values.percentile(0.99),
        )


def _windows(steps: Sequence[RecordedStep], window_s: float) -> Iterator[list[RecordedStep]]:
    window: list[RecordedStep] = []
    end = 0.0
    for step in steps:
        if window and step.start_s >= end:
            yield window
            window = []
        if not window:
            end = step.start_s + window_s
        window.append(step)
    if window:
        yield window
