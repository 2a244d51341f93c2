"""The runs of a repetition, made and tokenised before any clock starts; every arm gets the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grape_dsl.encoding import ChatEncoder, EncodingError
from sglang_ext.bench.run_work import RunWork
from sglang_ext.bench.workload.arrivals import Arrivals, Poisson, Replayed
from sglang_ext.bench.workload.counting import tokenizer_count
from sglang_ext.bench.workload.items import Items
from sglang_ext.bench.workload.job import Job
from sglang_ext.bench.workload.jobs import JobSource
from sglang_ext.bench.workload.workloads import find
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.prompts import plan_tasks

# In a closed loop arrivals have no meaning.
_CLOSED_RATE = 1e-6


@dataclass(frozen=True, slots=True)
class Prepared:
    """Args: jobs, works: the same runs in the same order. digest: of all ids, lengths and arrivals."""

    jobs: tuple[Job, ...]
    works: tuple[RunWork, ...]
    digest: str


@dataclass
class RunSource:
    """Makes the runs of every workload.

    Args:
        tokenizer: the model's folder.
        folder: real inputs; None: the built-in ones.
        stamps: the arrivals of a trace; None: a Poisson process.
        forced: outputs of a forced length; else of the length that the model chooses.
    """

    tokenizer: Path
    folder: Path | None = None
    chat: float = 0.0
    stamps: tuple[float, ...] | None = None
    forced: bool = True
    _sources: dict[str, JobSource] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            self._encoder = ChatEncoder.from_folder(self.tokenizer)
        except EncodingError as error:
            raise InputError(str(error)) from error
        self._count = tokenizer_count(self.tokenizer)

    def jobs(self, workload: str, rate: float | None, number: int, seed: int) -> list[Job]:
        """Args: rate: runs per second; None: of a closed loop. Raises InputError if the inputs cannot be used."""
        if workload not in self._sources:
            self._sources[workload] = JobSource(
                find(workload), Items(self.folder), self.chat, forced=self.forced, count=self._count
            )
        arrivals: Arrivals = Poisson(rate or _CLOSED_RATE)
        if self.stamps is not None and rate is not None:
            arrivals = Replayed(self.stamps, rate)
        return self._sources[workload].jobs(number, arrivals, seed)

    def prepare(self, jobs: Sequence[Job]) -> Prepared:
        works = []
        for job in jobs:
            plans = plan_tasks(job.program, job.inputs, self._encoder)
            works.append(RunWork(plans, job.outputs, self._encoder.text, job.forced))
        given = [
            [job.arrival_s, job.outputs, [[s.model_dump() for s in plan.segments] for plan in work.plans.values()]]
            for job, work in zip(jobs, works, strict=True)
        ]
        digest = hashlib.sha256(json.dumps(given).encode()).hexdigest()[:16]
        return Prepared(tuple(jobs), tuple(works), digest)
