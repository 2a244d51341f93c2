"""Whether a run kept its service levels, by three definitions. A figure names the one that it uses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sglang_ext.bench.recorded_run import RecordedRun

# Of times that were added up from step times.
_ROUNDING = 1e-9


class Attainment(StrEnum):
    """`mean`: time to first token, and the mean gap of the run's time line. `p90`: the same with the 90th percentile of
    its gaps. `strict`: every gap along its chains, whatever the first token took.
    """

    MEAN = "mean"
    P90 = "p90"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class ServiceLevels:
    """Seconds. Args: ttft_s: to a run's first token. tbt_s: between two tokens of a run."""

    ttft_s: float
    tbt_s: float

    def kept(self, run: RecordedRun, by: Attainment) -> bool:
        """Whether `run` attained them."""
        if by is Attainment.STRICT:
            return max(run.chain_gaps(), default=0.0) <= self.tbt_s + _ROUNDING
        if run.first_token_s > self.ttft_s + _ROUNDING:
            return False
        gaps = sorted(run.line_gaps())
        if not gaps:
            return True
        value = sum(gaps) / len(gaps) if by is Attainment.MEAN else gaps[-(-len(gaps) * 9 // 10) - 1]
        return value <= self.tbt_s + _ROUNDING
