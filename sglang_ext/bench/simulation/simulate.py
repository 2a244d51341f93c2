"""One arm on one list of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from sglang_ext.bench.recorded_run import RecordedRun, RecordedTask
from sglang_ext.bench.repetition import Repetition
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.engine import Engine
from sglang_ext.bench.simulation.estimates import Estimates
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.simulation.request import Run
from sglang_ext.bench.simulation.simulated_arm import SimulatedArm
from sglang_ext.bench.workload.job import Job


def simulate(
    jobs: Sequence[Job], machine: Machine, arm: SimulatedArm, slo: Slo, in_flight: int | None = None
) -> Repetition:
    """Equal arguments give equal results.

    Args:
        in_flight: so many runs at once, the next one as soon as one ends, whatever the jobs' arrivals (closed loop).

    Raises:
        SimulationError: the arm leaves work undone.
    """
    estimates = Estimates()
    engine = Engine(machine, arm.former(machine, estimates, slo))
    client = arm.client(engine, slo, estimates)
    client.start(jobs, in_flight)
    engine.run()
    return Repetition(
        runs=tuple(_recorded(run) for run in client.runs),
        steps=tuple(engine.steps),
        computed=engine.computed,
        needed=sum(job.prompt_tokens(task) for job in jobs for task in job.tasks),
        kv_high=engine.high_water,
    )


def _recorded(run: Run) -> RecordedRun:
    job = run.job
    return RecordedRun(
        index=job.index,
        workload=job.workload,
        submitted_s=run.submitted_s,
        tasks=tuple(
            RecordedTask(name=task.name, upstream=task.upstream, token_s=tuple(run.requests[task.name].token_s))
            for task in job.tasks
        ),
    )
