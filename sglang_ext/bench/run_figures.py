"""The figures of one arm, from its recorded runs."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.attainment import Attainment, ServiceLevels
from sglang_ext.bench.quantities import Values
from sglang_ext.bench.recorded_run import RecordedRun


class Gaps(BaseModel):
    """Seconds between two tokens."""

    model_config = ConfigDict(frozen=True)

    mean: float
    p50: float
    p95: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: Values) -> Gaps | None:
        """None where there is no gap."""
        if not values:
            return None
        return cls(
            mean=values.mean(),
            p50=values.percentile(0.5),
            p95=values.percentile(0.95),
            p99=values.percentile(0.99),
            most=values.most,
        )


class RunFigures(BaseModel):
    """What `Sample` of runs comes to. Times in seconds.

    Args:
        line: gaps between neighbouring tokens of a run, all tasks on one time line.
        chain: gaps along chains of tasks.
        switch: gaps from a task's end to the first token of one that reads it; None without such.
        worst: each run's largest gap along its chains.
        ttft, final_ttft: from submission to the first token of the run, and of its final answer.
        completion: from submission to the last token.
        tokens_per_s: output tokens over the time from the first submission to the last token of each repetition.
        strict: share of runs with every gap along their chains within the TBT service level.
        attained: share of runs that kept both service levels, by definition.
        goodput: runs per second that kept them by the definition `mean`.
    """

    model_config = ConfigDict(frozen=True)

    runs: int
    line: Gaps | None
    chain: Gaps | None
    switch: Gaps | None
    worst: Gaps | None
    ttft: Gaps
    final_ttft: Gaps
    completion: Gaps
    tokens_per_s: float
    strict: float
    attained: dict[Attainment, float]
    goodput: float


class RunSet:
    """All runs of one arm, repetition by repetition, ready to be asked for figures.

    Args:
        repetitions: the runs of each, one at least in all. Runs of two arms with equal places are pairs.
    """

    def __init__(self, repetitions: Sequence[Sequence[RecordedRun]], levels: ServiceLevels) -> None:
        self.repetitions = [list(runs) for runs in repetitions]
        self.levels = levels
        self.runs = [run for runs in self.repetitions for run in runs]
        chains = [run.chain_gaps() for run in self.runs]
        self.line = Values([run.line_gaps() for run in self.runs])
        self.chain = Values(chains)
        self.switch = Values([run.switch_gaps() for run in self.runs])
        self.worst = Values([[max(own)] if own else [] for own in chains])
        self.ttft = Values([[run.first_token_s] for run in self.runs])
        self.final_ttft = Values([[run.final_token_s] for run in self.runs])
        self.completion = Values([[run.completion_s] for run in self.runs])
        self._kept = {by: [levels.kept(run, by) for run in self.runs] for by in Attainment}

    def share_kept(self, by: Attainment) -> float:
        """Share of runs that attained the levels."""
        return sum(self._kept[by]) / len(self.runs)

    def figures(self) -> RunFigures:
        seconds = sum(
            max(r.end_s for r in runs) - min(r.submitted_s for r in runs) for runs in self.repetitions if runs
        )
        ttft, final, completion = Gaps.of(self.ttft), Gaps.of(self.final_ttft), Gaps.of(self.completion)
        assert ttft is not None and final is not None and completion is not None
        return RunFigures(
            runs=len(self.runs),
            line=Gaps.of(self.line),
            chain=Gaps.of(self.chain),
            switch=Gaps.of(self.switch),
            worst=Gaps.of(self.worst),
            ttft=ttft,
            final_ttft=final,
            completion=completion,
            tokens_per_s=sum(run.tokens for run in self.runs) / seconds,
            strict=self.share_kept(Attainment.STRICT),
            attained={by: self.share_kept(by) for by in Attainment},
            goodput=sum(self._kept[Attainment.MEAN]) / seconds,
        )
