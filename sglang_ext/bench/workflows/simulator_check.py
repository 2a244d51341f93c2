"""The simulator against a measurement: the same runs, with F and the scatter of the steps that were measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from sglang_ext.bench.arms import Arm
from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.envelope import FIGURES
from sglang_ext.bench.run_figures import RunSet
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.simulation.simulate import simulate
from sglang_ext.bench.simulation.simulated_arm import PolicyArm, SimulatedArm, stock_arm
from sglang_ext.bench.workflows.arms import ArmNames
from sglang_ext.bench.workflows.calibration import load_of
from sglang_ext.bench.workflows.cell import Cell
from sglang_ext.bench.workflows.plan import CLOSED
from sglang_ext.bench.workflows.prepared import RunSource
from sglang_ext.bench.workflows.rates import Rates, machine_of, number
from sglang_ext.bench.workflows.record import CalibrationRecord
from sglang_ext.bench.workflows.store import CellStore
from sglang_ext.bench.workload.arrivals import read_trace
from sglang_ext.bench.workload.job import Job
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_fit import Sample, fit
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.settings import Streaming

KIND: Literal["grape.bench.simulator/1"] = "grape.bench.simulator/1"
# Of a fit that takes time by their number.
_MOST_STEPS = 4000
_BUILT_IN, _POISSON = "built in", "poisson"
_SETTINGS = {"arrivals", "chat", "in_flight", "inputs", "natural_stops", "policy", "tbt_steps", "ttft_steps"}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Pair(_Model):
    """One figure, in seconds."""

    measured: float
    simulated: float

    @property
    def ratio(self) -> float | None:
        """Simulated over measured; None where nothing was measured."""
        return self.simulated / self.measured if self.measured else None


class PlaceCheck(_Model):
    """One workload at one load.

    Args:
        rate: runs per second; None: closed loop.
        runs: of each arm.
        cost, errors: F, fitted to the steps of all arms here, and its mean relative error on those held out.
        arms: per arm its figures by name.
    """

    workload: str
    load: str
    rate: float | None
    runs: int
    cost: dict[str, float]
    errors: dict[str, float]
    arms: dict[str, dict[str, Pair]]


class SimulatorRecord(_Model):
    """Args:
    unloaded_s: u, as the measurement had it.
    client_s: from a token's step to the arrival of a request that a client sends because of it.
    settings: those of the measurement.
    """

    kind: Literal["grape.bench.simulator/1"] = KIND
    unloaded_s: float
    client_s: float
    settings: dict[str, Any]
    places: list[PlaceCheck]


@dataclass
class SimulatorCheck:
    """Simulates what a folder of cells holds.

    Args:
        tokenizer: the folder of the measurement's model.
        advance: told each arm that is done, and its place.

    Raises:
        InputError: the folder is none of a measurement, or outputs had natural stops, of which the simulator knows
            nothing.
    """

    store: CellStore
    tokenizer: Path
    advance: Callable[[str], None] = lambda _: None
    _source: RunSource = field(init=False)

    def __post_init__(self) -> None:
        settings = self.store.settings
        if missing := sorted(_SETTINGS - settings.keys()):
            raise InputError(f"{self.store.folder} holds no measurement: its settings lack {', '.join(missing)}")
        if settings["natural_stops"]:
            raise InputError("the measurement has natural stops; simulated outputs have the lengths that were forced")
        inputs, arrivals = settings["inputs"], settings["arrivals"]
        self._source = RunSource(
            self.tokenizer,
            None if inputs == _BUILT_IN else Path(inputs),
            settings["chat"],
            None if arrivals == _POISSON else read_trace(Path(arrivals)),
        )

    def run(self) -> SimulatorRecord:
        """Raises InputError if the inputs have changed since, SimulationError if an arm leaves work undone."""
        calibration = self.store.load("calibration", CalibrationRecord)
        cells = list(self.store.cells())
        if calibration is None or not cells:
            raise InputError(f"{self.store.folder} has no finished cell; measure with `grape bench workflows --output`")
        settings = self.store.settings
        u = calibration.unloaded_s
        slo = Slo(settings["ttft_steps"] * u, settings["tbt_steps"] * u)
        late = median(second for cell in cells for second in cell.late)
        machine = replace(machine_of(calibration), client_s=late + calibration.client_request_s)
        places = dict.fromkeys((cell.key.workload, cell.key.load) for cell in cells)
        return SimulatorRecord(
            unloaded_s=u,
            client_s=machine.client_s,
            settings=settings,
            places=[self._place(place, [c for c in cells if _place_of(c) == place], machine, slo) for place in places],
        )

    def _place(self, place: tuple[str, str], cells: Sequence[Cell], machine: Machine, slo: Slo) -> PlaceCheck:
        workload, load = place
        rate = self._rate(workload, load)
        in_flight = None if rate is not None else self.store.settings["in_flight"]
        samples = _samples(cells)
        model = fit(samples)
        machine = replace(machine, cost=model, scatter=_scatter(model, samples))
        levels = ServiceLevels(slo.ttft_s, slo.tbt_s)
        names = ArmNames(
            self.store.settings["policy"], self.store.settings["ttft_steps"], self.store.settings["tbt_steps"]
        )
        arms: dict[str, dict[str, Pair]] = {}
        by_arm: dict[str, list[Cell]] = {}
        for cell in cells:
            by_arm.setdefault(cell.key.arm, []).append(cell)
        for name, own in by_arm.items():
            arm = simulated(names.arm(name))
            repeated = [simulate(self._jobs(cell, rate), machine, arm, slo, in_flight).runs for cell in own]
            arms[name] = _pairs(RunSet([c.repetition.runs for c in own], levels), RunSet(repeated, levels))
            self.advance(f"{workload}, {load}, {name}")
        values = model.as_dict()
        errors = values.pop("errors")
        runs = sum(len(cell.repetition.runs) for cell in next(iter(by_arm.values())))
        return PlaceCheck(workload=workload, load=load, rate=rate, runs=runs, cost=values, errors=errors, arms=arms)

    def _rate(self, workload: str, load: str) -> float | None:
        if load == CLOSED:
            return None
        known = (self.store.load("rates", Rates) or Rates()).rates.get(workload, {})
        return known[load] if load in known else number(load)

    def _jobs(self, cell: Cell, rate: float | None) -> list[Job]:
        key = cell.key
        jobs = self._source.jobs(key.workload, rate, len(cell.repetition.runs), key.repetition)
        if self._source.prepare(jobs).digest != cell.prompts:
            raise InputError(
                f"the runs of the cell ({key}) cannot be made again: its inputs, its tokenizer or Grape have changed"
            )
        return jobs


def simulated(arm: Arm) -> SimulatedArm:
    """The simulator's form of an arm of real engines."""
    if arm.stock:
        return stock_arm(arm.name)
    environment = dict(arm.engine.environment)
    off = frozenset(part for part in environment["GRAPE_POLICY_OFF"].split(",") if part)
    streaming = arm.engine.streaming if arm.client == "held" else Streaming.OFF
    assert streaming is not None
    return PolicyArm(environment["GRAPE_POLICY"], Configuration(off=off), streaming, DEFAULT_EDGE_WEIGHT, arm.name)


def _place_of(cell: Cell) -> tuple[str, str]:
    return cell.key.workload, cell.key.load


def _samples(cells: Iterable[Cell]) -> list[Sample]:
    steps = [step for cell in cells for step in cell.repetition.steps if step.seconds > 0]
    if len(steps) > _MOST_STEPS:
        steps = random.Random(0).sample(steps, _MOST_STEPS)
    return [Sample(load_of(step), step.seconds) for step in steps]


def _scatter(model: CostModel, samples: Iterable[Sample]) -> dict[str, list[float]]:
    """How far single steps are off, by regime: a fit that gives less weight to outliers leaves their time out."""
    found: dict[str, list[float]] = {}
    for sample in samples:
        found.setdefault(sample.load.regime, []).append(sample.seconds / model.time(sample.load))
    return found


def _pairs(measured: RunSet, repeated: RunSet) -> dict[str, Pair]:
    return {
        name: Pair(measured=figure.value(measured), simulated=figure.value(repeated))
        for name, figure in FIGURES.items()
        if figure.values(measured) and figure.values(repeated)
    }
