"""Loads of a real engine by the rules of the simulator, from what was measured of stock's default alone."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.engine import SimulationError
from sglang_ext.bench.simulation.loads import busy, knee, number
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.workflows.plan import BUSY, KNEE, NAMED
from sglang_ext.bench.workflows.prepared import RunSource
from sglang_ext.bench.workflows.record import CalibrationRecord
from sglang_ext.bench.workload.job import Job
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.cost_model import CostModel

_SEEDS = (101, 102)
_RUNS, _SECONDS = 30, 60.0


class Rates(BaseModel):
    """Runs per second, by workload and name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rates: dict[str, dict[str, float]] = {}

    def known(self, workload: str, load: str) -> float | None:
        """None: not found yet."""
        return self.rates.get(workload, {}).get(load)

    def with_rate(self, workload: str, load: str, rate: float) -> Rates:
        return Rates(rates=self.rates | {workload: {**self.rates.get(workload, {}), load: rate}})


def machine_of(calibration: CalibrationRecord) -> Machine:
    """The engine that was measured, for the simulator."""
    return Machine(
        name="this engine",
        cost=CostModel.from_dict(dict(calibration.cost)),
        kv_tokens=calibration.kv_tokens,
        chunk=calibration.chunk,
        running=calibration.running,
        overlap=calibration.overlap,
    )


def find_rate(load: str, workload: str, source: RunSource, machine: Machine, slo: Slo) -> float:
    """Runs per second of a load.

    Raises:
        InputError: it is neither a name nor a positive number, or the simulated engine cannot hold the workload.
    """
    if load not in NAMED:
        return number(load, NAMED)

    def make(rate: float) -> list[list[Job]]:
        return [source.jobs(workload, rate, max(_RUNS, round(rate * _SECONDS)), seed) for seed in _SEEDS]

    try:
        if load == BUSY:
            return busy(make, machine, slo)
        found = knee(make, machine, slo)
    except SimulationError as error:
        raise InputError(
            f"--load {load}: no rate can be found for {workload!r}, since this engine cannot run it: {error}; "
            "give the engine more KV, or name the rate"
        ) from None
    return found if load == KNEE else float(f"{found / 2:.3g}")
