"""What is measured of stock SGLang's default before everything else: u, F, and what the clients cost."""

from __future__ import annotations

from statistics import median

from sglang_ext.bench.clients import PlainClient
from sglang_ext.bench.recorded_step import RecordedStep
from sglang_ext.bench.simulation.machine import Overlap
from sglang_ext.bench.workflows.measurement import Measurement
from sglang_ext.bench.workflows.noop_server import client_cost
from sglang_ext.bench.workflows.observation import steps_of
from sglang_ext.bench.workflows.prepared import RunSource
from sglang_ext.bench.workflows.record import CalibrationRecord
from sglang_ext.driver.errors import EngineError
from sglang_ext.policy.cost_fit import Sample, fit
from sglang_ext.policy.cost_model import Load

# One run alone, then so many at once, from one to more than an engine of two cores can do in time.
IN_FLIGHT = (1, 3, 6)
WORKLOAD = "search"
_SEED = 9000


async def calibrate(measurement: Measurement, source: RunSource, flops: float) -> CalibrationRecord:
    """Args:
    measurement: of stock's default, warmed up.
    flops: of a large matrix product on this machine.

    Raises:
        EngineError: no step had a single decode and nothing else.
    """
    client, steps = PlainClient(), list[RecordedStep]()
    unloaded: list[float] = []
    for in_flight in IN_FLIGHT:
        jobs = source.jobs(WORKLOAD, None, in_flight, _SEED + in_flight)
        await measurement.flush()
        measurement.engine.log.restart()
        await measurement.load(client, source.prepare(jobs), in_flight)
        log = measurement.engine.log
        found = steps_of(*log.lines(), log.lag)
        steps += found
        if in_flight == 1:
            unloaded += [step.seconds for step in found if step.rows == 1 and not step.tokens]
    if not unloaded:
        raise EngineError("no task decoded alone, so that there is no unloaded decode step to measure by")
    model = fit([Sample(load_of(step), step.seconds) for step in steps if step.seconds > 0])
    probe = source.prepare(source.jobs(WORKLOAD, None, max(IN_FLIGHT), _SEED))
    request_s, token_s = await client_cost(probe)
    resolved = measurement.engine.record.resolved
    coefficients = {name: value for name, value in model.as_dict().items() if name != "errors"}
    return CalibrationRecord(
        unloaded_s=median(unloaded),
        cost=coefficients,
        errors=model.errors,
        steps=len(steps),
        matrix_flops=flops,
        client_request_s=request_s,
        client_token_s=token_s,
        dtype=str(resolved["dtype"]),
        threads=measurement.engine.threads,
        kv_tokens=int(resolved["max_total_num_tokens"]),
        chunk=int(resolved["chunked_prefill_size"]),
        running=int(resolved["max_running_requests"]),
        overlap=Overlap.of(str(resolved["device"]), bool(resolved["disable_overlap_schedule"])),
    )


def load_of(step: RecordedStep) -> Load:
    return Load(step.rows, step.tokens, step.kv, step.attention, step.pieces)
