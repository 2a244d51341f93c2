"""The simulator against a measurement: the same runs, with F and the scatter of the steps that were measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from sglang_ext.bench.arms import Arm
from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.envelope import FIGURES
from sglang_ext.bench.run_figures import RunSet
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.loads import number
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.simulation.simulate import simulate
from sglang_ext.bench.simulation.simulated_arm import PolicyArm, SimulatedArm, stock_arm
from sglang_ext.bench.workflows.arms import ArmNames
from sglang_ext.bench.workflows.calibration import load_of
from sglang_ext.bench.workflows.cell import Cell
from sglang_ext.bench.workflows.plan import CLOSED, NAMED, Place
from sglang_ext.bench.workflows.prepared import Prepared, RunSource
from sglang_ext.bench.workflows.rates import Rates, machine_of
from sglang_ext.bench.workflows.record import CalibrationRecord
from sglang_ext.bench.workflows.simulator_record import Pair, PlaceCheck, SimulatorRecord
from sglang_ext.bench.workflows.store import CALIBRATION, RATES, CellStore
from sglang_ext.bench.workload.arrivals import POISSON, read_trace
from sglang_ext.bench.workload.items import NO_FOLDER
from sglang_ext.bench.workload.job import Job
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_fit import Sample, fit
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.settings import Streaming

# Of a fit that takes time by their number.
_MOST_STEPS = 4000
_SETTINGS = {"arrivals", "chat", "in_flight", "inputs", "natural_stops", "policy", "tbt_steps", "ttft_steps"}


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
    _prepared: dict[tuple[str, str, int, int], Prepared] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        settings = self.store.settings
        if missing := sorted(_SETTINGS - settings.keys()):
            raise InputError(f"{self.store.folder} holds no measurement: its settings lack {', '.join(missing)}")
        if settings["natural_stops"]:
            raise InputError("the measurement has natural stops; simulated outputs have the lengths that were forced")
        inputs, arrivals = settings["inputs"], settings["arrivals"]
        self._source = RunSource(
            self.tokenizer,
            None if inputs == NO_FOLDER else Path(inputs),
            settings["chat"],
            None if arrivals == POISSON else read_trace(Path(arrivals)),
        )

    def run(self) -> SimulatorRecord:
        """Raises InputError if the inputs have changed since, SimulationError if an arm leaves work undone."""
        calibration = self.store.load(CALIBRATION, CalibrationRecord)
        cells = list(self.store.cells())
        if calibration is None or not cells:
            raise InputError(f"{self.store.folder} has no finished cell; measure with `grape bench workflows --output`")
        settings = self.store.settings
        u = calibration.unloaded_s
        slo = Slo(settings["ttft_steps"] * u, settings["tbt_steps"] * u)
        late = median(second for cell in cells for second in cell.late)
        machine = replace(machine_of(calibration), client_s=late + calibration.client_request_s)
        places: dict[Place, list[Cell]] = {}
        for cell in cells:
            places.setdefault(Place(cell.key.workload, cell.key.load), []).append(cell)
        return SimulatorRecord(
            unloaded_s=u,
            client_s=machine.client_s,
            settings=settings,
            places=[self._place(place, own, machine, slo) for place, own in places.items()],
        )

    def _place(self, place: Place, cells: Sequence[Cell], machine: Machine, slo: Slo) -> PlaceCheck:
        settings = self.store.settings
        rate = self._rate(place)
        in_flight = None if rate is not None else settings["in_flight"]
        samples = _samples(cells)
        model = fit(samples)
        machine = replace(machine, cost=model, scatter=_scatter(model, samples))
        levels = ServiceLevels(slo.ttft_s, slo.tbt_s)
        names = ArmNames(settings["policy"], settings["ttft_steps"], settings["tbt_steps"])
        arms: dict[str, dict[str, Pair]] = {}
        by_arm: dict[str, list[Cell]] = {}
        for cell in cells:
            by_arm.setdefault(cell.key.arm, []).append(cell)
        for name, own in by_arm.items():
            arm = simulated(names.arm(name))
            repeated = [simulate(self._jobs(cell, rate), machine, arm, slo, in_flight).runs for cell in own]
            arms[name] = _pairs(RunSet([c.repetition.runs for c in own], levels), RunSet(repeated, levels))
            self.advance(f"{place.workload}, {place.load}, {name}")
        values = model.as_dict()
        errors = values.pop("errors")
        runs = sum(len(cell.repetition.runs) for cell in next(iter(by_arm.values())))
        return PlaceCheck(
            workload=place.workload, load=place.load, rate=rate, runs=runs, cost=values, errors=errors, arms=arms
        )

    def _rate(self, place: Place) -> float | None:
        if place.load == CLOSED:
            return None
        known = (self.store.load(RATES, Rates) or Rates()).known(place.workload, place.load)
        return number(place.load, NAMED) if known is None else known

    def _jobs(self, cell: Cell, rate: float | None) -> Sequence[Job]:
        key, runs = cell.key, len(cell.repetition.runs)
        # All arms have the same.
        which = key.workload, key.load, key.repetition, runs
        if which not in self._prepared:
            jobs = self._source.jobs(key.workload, rate, runs, key.repetition)
            self._prepared[which] = self._source.prepare(jobs)
        prepared = self._prepared[which]
        if prepared.digest != cell.prompts:
            raise InputError(
                f"the runs of the cell ({key}) cannot be made again: its inputs, its tokenizer or Grape have changed"
            )
        return prepared.jobs


def simulated(arm: Arm) -> SimulatedArm:
    """The simulator's form of an arm of real engines."""
    if arm.stock:
        return stock_arm(arm.name)
    environment = dict(arm.engine.environment)
    off = frozenset(part for part in environment["GRAPE_POLICY_OFF"].split(",") if part)
    streaming = arm.engine.streaming if arm.client == "held" else Streaming.OFF
    assert streaming is not None
    return PolicyArm(environment["GRAPE_POLICY"], Configuration(off=off), streaming, label=arm.name)


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
