"""`WorkflowBench`: one measurement of whole workflows, engines included."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from sglang_ext.bench.arms import Arm, EngineKind, engines, new_client
from sglang_ext.bench.engine_setup import EngineSetup
from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.bench.machine_limits import LimitProbe
from sglang_ext.bench.progress import Progress
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.workflows.calibration import WORKLOAD, calibrate
from sglang_ext.bench.workflows.cell import Cell, CellKey
from sglang_ext.bench.workflows.engine_group import EngineGroup
from sglang_ext.bench.workflows.measurement import Measurement
from sglang_ext.bench.workflows.plan import CLOSED, TAIL_S, Place, Stage
from sglang_ext.bench.workflows.prepared import Prepared, RunSource
from sglang_ext.bench.workflows.rates import Rates, find_rate, machine_of
from sglang_ext.bench.workflows.record import CalibrationRecord
from sglang_ext.bench.workflows.store import CALIBRATION, RATES, CellStore

_WARM_UP_SEED = 8000
_WARM_UP_RUNS = 2
_PLAIN = "plain"
# A cell has so many runs at least, and a closed loop so many for each that is under way.
_LEAST_RUNS, _CLOSED_ROUNDS = 3, 3


@dataclass
class WorkflowBench:
    """Measures stages, cell by cell; what the store has already is not measured again.

    Args:
        default: stock's default, on which the calibration is done.
        seconds: in which the runs of a cell arrive.
        ttft_steps, tbt_steps: the service levels.
        in_flight: runs at once of a closed loop.
        limit_s: no cell is begun that would end so many seconds after `begin`.
    """

    setup: EngineSetup
    source: RunSource
    store: CellStore
    default: EngineKind
    seconds: float
    ttft_steps: float
    tbt_steps: float
    in_flight: int
    limit_s: float
    progress: Progress
    begin: float = field(default_factory=time.monotonic)
    _prepared: dict[tuple[str, str, int], Prepared] = field(default_factory=dict)

    def run(self, stage: Stage) -> None:
        """Measure what is missing of a stage, until the time is over. Raises EngineError."""
        self.progress.measuring(stage.cells)
        for repetitions in stage.block_repetitions():
            for kinds in stage.groups():
                arms = [
                    arm for arm in stage.arms if arm.engine in kinds and self._missing([arm], stage.places, repetitions)
                ]
                if arms and not self._over():
                    self._block(stage, arms, engines(tuple(arms)), repetitions)

    def cells(self, stage: Stage, place: Place) -> dict[str, list[Cell]]:
        """What there is of a stage, by arm: those repetitions that all of its arms have."""
        numbers = stage.numbers
        found = {
            arm.name: {n: cell for n in numbers if (cell := self.store.cell(_key(arm, place, n)))} for arm in stage.arms
        }
        measured = {name: own for name, own in found.items() if own}
        common = [n for n in numbers if measured and all(n in own for own in measured.values())]
        return {name: [own[n] for n in common] for name, own in measured.items()} if common else {}

    def missing(self, stage: Stage) -> int:
        """Cells of a stage that are not measured."""
        return self._missing(stage.arms, stage.places, stage.numbers)

    @property
    def calibrated(self) -> bool:
        return self.store.load(CALIBRATION, CalibrationRecord) is not None

    def calibration(self) -> CalibrationRecord:
        """Measured before, or now on an engine of its own. Raises EngineError."""
        found = self.store.load(CALIBRATION, CalibrationRecord)
        if found is None:
            with self._engines([self.default]) as group:
                asyncio.run(self._calibrate(group))
            found = self.store.load(CALIBRATION, CalibrationRecord)
            assert found is not None
        return found

    def slo(self) -> Slo:
        """The service levels in seconds."""
        unloaded_s = self.calibration().unloaded_s
        return Slo(self.ttft_steps * unloaded_s, self.tbt_steps * unloaded_s)

    def rate(self, place: Place) -> float | None:
        """Runs per second; None: a closed loop. Found once, from the calibration alone."""
        if place.load == CLOSED:
            return None
        rates = self.store.load(RATES, Rates) or Rates()
        found = rates.known(place.workload, place.load)
        if found is None:
            machine = machine_of(self.calibration())
            found = find_rate(place.load, place.workload, self.source, machine, self.slo())
            self.store.save(RATES, rates.with_rate(place.workload, place.load, found))
        return found

    def engine_records(self, arms: Sequence[Arm]) -> dict[str, EngineRecord]:
        """What the engines of some arms said of themselves when they were measured."""
        names = dict.fromkeys(arm.engine.name for arm in arms)
        return {name: record for name in names if (record := self.store.load(f"engine.{name}", EngineRecord))}

    def _missing(self, arms: Sequence[Arm], places: Sequence[Place], repetitions: Sequence[int]) -> int:
        keys = (_key(arm, place, n) for arm in arms for place in places for n in repetitions)
        return sum(not self.store.has(key) for key in keys)

    def _over(self) -> bool:
        return time.monotonic() - self.begin + self.seconds + TAIL_S > self.limit_s

    def _block(
        self, stage: Stage, arms: Sequence[Arm], kinds: Sequence[EngineKind], repetitions: Sequence[int]
    ) -> None:
        if self.default not in kinds:
            self.calibration()
        with self._engines(kinds) as group:
            asyncio.run(self._measure(group, stage, arms, repetitions))

    def _engines(self, kinds: Sequence[EngineKind]) -> AbstractContextManager[EngineGroup]:
        return EngineGroup.start(self.setup, kinds, self.store.engine_folder(), self.progress.starting)

    async def _calibrate(self, group: EngineGroup) -> None:
        async with group.connected() as measurements:
            await self._calibrate_on(measurements[self.default.name])

    async def _calibrate_on(self, measurement: Measurement) -> None:
        await self._warm_up(measurement, _PLAIN, WORKLOAD)
        flops = _matrix_flops(measurement.engine.record)
        self.store.save(CALIBRATION, await calibrate(measurement, self.source, flops))

    async def _measure(self, group: EngineGroup, stage: Stage, arms: Sequence[Arm], repetitions: Sequence[int]) -> None:
        async with group.connected() as measurements:
            for name, measurement in measurements.items():
                self.store.save(f"engine.{name}", measurement.engine.record)
            for arm in arms:
                await self._warm_up(measurements[arm.engine.name], arm.client, stage.places[0].workload)
            if self.store.load(CALIBRATION, CalibrationRecord) is None:
                await self._calibrate_on(measurements[self.default.name])
            for number in repetitions:
                for place in stage.places:
                    # Another arm comes first each time, so that none profits from its place.
                    first = number % len(arms)
                    for arm in (*arms[first:], *arms[:first]):
                        await self._cell(measurements[arm.engine.name], arm, place, number)

    async def _cell(self, measurement: Measurement, arm: Arm, place: Place, number: int) -> None:
        key = _key(arm, place, number)
        if not self.store.has(key):
            if self._over():
                return
            in_flight = self.in_flight if place.load == CLOSED else None
            cell = await measurement.cell(key, new_client(arm.client), self._runs(place, number), in_flight)
            self.store.save_cell(cell)
        self.progress.measured(str(key))

    def _runs(self, place: Place, number: int) -> Prepared:
        key = (place.workload, place.load, number)
        if key not in self._prepared:
            rate = self.rate(place)
            runs = self.in_flight * _CLOSED_ROUNDS if rate is None else max(_LEAST_RUNS, round(rate * self.seconds))
            self._prepared[key] = self.source.prepare(self.source.jobs(place.workload, rate, runs, number))
        return self._prepared[key]

    async def _warm_up(self, measurement: Measurement, client: str, workload: str) -> None:
        """oneDNN generates code for shapes that it has not seen, and each client's steps have shapes of their own."""
        await measurement.flush()
        jobs = self.source.jobs(workload, None, _WARM_UP_RUNS, _WARM_UP_SEED)
        await measurement.load(new_client(client), self.source.prepare(jobs), _WARM_UP_RUNS)


def _key(arm: Arm, place: Place, number: int) -> CellKey:
    return CellKey(arm=arm.name, workload=place.workload, load=place.load, repetition=number)


def _matrix_flops(engine: EngineRecord) -> float:
    """Of a large matrix product on all that the engine runs on: ranks share one processor, each has an accelerator."""
    resolved = engine.resolved
    device = str(resolved["device"])
    devices = 1 if device == "cpu" else int(resolved["tp_size"])
    return devices * LimitProbe(str(resolved["dtype"]), device).measure().flops
