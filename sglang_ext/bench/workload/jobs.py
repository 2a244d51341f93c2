"""The jobs of one repetition."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from grape_dsl.compiler import CompiledWorkflow, compile
from grape_dsl.workflow import Workflow
from sglang_ext.bench.workload.arrivals import Arrivals
from sglang_ext.bench.workload.counting import CountTokens, estimate
from sglang_ext.bench.workload.items import Items
from sglang_ext.bench.workload.job import Job
from sglang_ext.bench.workload.lengths import draw_all
from sglang_ext.bench.workload.shape import shapes
from sglang_ext.bench.workload.workloads import Workload, find
from sglang_ext.driver.errors import InputError


@dataclass(frozen=True)
class JobSource:
    """Makes the jobs of a workload.

    Args:
        items: the inputs.
        chat: share of ordinary requests among the jobs, 0 to 1.
        output_scale: factor of all outputs' lengths.
        forced: outputs of a forced length; else of the length that the model chooses.
    """

    workload: Workload
    items: Items = field(default_factory=Items)
    chat: float = 0.0
    output_scale: float = 1.0
    forced: bool = True
    count: CountTokens = estimate
    _compiled: dict[int, CompiledWorkflow] = field(default_factory=dict, repr=False)

    def jobs(self, number: int, arrivals: Arrivals, seed: int) -> list[Job]:
        """`number` jobs; equal seeds give equal jobs. Raises InputError if the inputs cannot be used."""
        chance = random.Random(f"jobs {seed}")
        times = arrivals.times(number, seed)
        return [self._job(index, arrival, seed, chance) for index, arrival in enumerate(times)]

    def _job(self, index: int, arrival_s: float, seed: int, chance: random.Random) -> Job:
        kind, inputs_of = (self.workload, self._own)
        if chance.random() < self.chat:
            kind, inputs_of = find("chat"), self._ordinary
        item = inputs_of[chance.randrange(len(inputs_of))]
        try:
            workflow, inputs = kind.build(item, seed * 1_000_000 + index, self.count)
        except (KeyError, TypeError) as error:
            raise InputError(f"an input of {kind.name!r} cannot be used: {type(error).__name__}: {error}") from None
        program = self._program(workflow)
        outputs = draw_all(kind.lengths, program.graph.tasks(), chance, self.output_scale)
        tasks = shapes(program, inputs, outputs, self.count)
        return Job(index, kind.name, arrival_s, tasks, program, inputs, self.forced)

    @cached_property
    def _own(self) -> Sequence[dict[str, Any]]:
        return _read(self.items, self.workload)

    @cached_property
    def _ordinary(self) -> Sequence[dict[str, Any]]:
        return _read(self.items, find("chat"))

    def _program(self, workflow: Workflow) -> CompiledWorkflow:
        # Workloads give the same object for the same program.
        if id(workflow) not in self._compiled:
            self._compiled[id(workflow)] = compile(workflow)
        return self._compiled[id(workflow)]


def _read(items: Items, workload: Workload) -> list[dict[str, Any]]:
    found = items.read(workload.built_in, workload.patterns)
    if not found:
        raise InputError(f"there are no inputs for {workload.name!r}")
    return found
