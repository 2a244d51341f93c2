"""The order of cells, and going on where a measurement was ended; the engines are no real ones."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace

import pytest

from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.bench.workflows import bench as bench_module
from sglang_ext.bench.workflows.arms import ArmNames
from sglang_ext.bench.workflows.bench import WorkflowBench
from sglang_ext.bench.workflows.plan import CLOSED, Place, Stage
from sglang_ext.bench.workflows.rates import Rates
from sglang_ext.bench.workflows.store import CellStore
from tests.sglang_ext.bench.workflows.cells import CALIBRATION, cell

NAMES = ArmNames("deadline", 40, 3)
ARMS = NAMES.arms(("grape", "default/plain", "default/prewarm"))
PLACES = (Place("search", "knee"), Place("code", "0.1"))


class Killed(Exception):
    pass


class FakeEngines:
    """Remembers what was started and measured. Args: cells: that it lives for; None: for ever."""

    def __init__(self, cells=None):
        self.started, self.measured, self.in_flight = [], [], []
        self.left = cells

    @contextmanager
    def start(self, setup, kinds, folder, starting):
        self.started.append([kind.name for kind in kinds])
        yield self

    @asynccontextmanager
    async def connected(self):
        yield {name: self for name in self.started[-1]}

    @property
    def engine(self):
        return SimpleNamespace(record=EngineRecord(flags=[], environment={}, resolved={}, plugin=None))

    async def flush(self):
        pass

    async def load(self, client, prepared, in_flight):
        return []

    async def cell(self, key, client, prepared, in_flight):
        if self.left == 0:
            raise Killed
        self.left = None if self.left is None else self.left - 1
        self.measured.append(key)
        self.in_flight.append(in_flight)
        return cell(key.arm, key.workload, key.load, key.repetition)


class FakeSource:
    """Makes as many runs as it is asked for."""

    def __init__(self):
        self.asked = []

    def jobs(self, workload, rate, number, seed):
        self.asked.append((workload, rate, number, seed))
        return [None] * number

    def prepare(self, jobs):
        return jobs


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a benchmark on some engines; all have one store."""

    def new(engines, limit_s=1e9):
        monkeypatch.setattr(bench_module, "EngineGroup", engines)
        store = CellStore(tmp_path, {})
        store.save("calibration", CALIBRATION)
        store.save("rates", Rates().with_rate("search", "knee", 0.5).with_rate("code", "0.1", 0.1))
        progress = SimpleNamespace(starting=None, measuring=lambda n: None, measured=lambda what: None)
        default = NAMES.default().engine
        return WorkflowBench(None, FakeSource(), store, default, 20.0, 40.0, 3.0, 4, limit_s=limit_s, progress=progress)

    return new


def stage(repetitions=2, blocks=1):
    return Stage("some", ARMS, PLACES, repetitions, blocks)


def test_arms_take_turns_and_each_block_starts_the_engines_anew(make):
    engines = FakeEngines()
    make(engines).run(stage(3, 2))
    assert engines.started == [["grape", "stock-default"]] * 2
    assert len(engines.measured) == len(set(engines.measured)) == 3 * 2 * 3
    knee = [(key.repetition, key.arm) for key in engines.measured if key.load == "knee"]
    assert [arm for number, arm in knee if number == 1] == ["default/plain", "default/prewarm", "grape"]
    assert [arm for number, arm in knee if number == 2] == ["default/prewarm", "grape", "default/plain"]
    assert [number for number, _ in knee] == sorted(number for number, _ in knee)


def test_a_killed_measurement_goes_on(make):
    first = FakeEngines(cells=5)
    with pytest.raises(Killed):
        make(first).run(stage())
    second = FakeEngines()
    bench = make(second)
    assert bench.missing(stage()) == 12 - 5
    bench.run(stage())
    assert len(first.measured) == 5
    assert sorted(map(str, [*first.measured, *second.measured])) == sorted(
        map(str, dict.fromkeys(second.measured + first.measured))
    )
    assert bench.missing(stage()) == 0
    cells = bench.cells(stage(), PLACES[0])
    assert {name: [c.key.repetition for c in own] for name, own in cells.items()} == {arm.name: [1, 2] for arm in ARMS}
    # Nothing is left to do: no engine is started.
    third = FakeEngines()
    make(third).run(stage())
    assert third.started == []


def test_repetitions_that_an_arm_lacks_are_not_compared(make):
    engines = FakeEngines(cells=3 * 2 + 2)
    bench = make(engines)
    with pytest.raises(Killed):
        bench.run(stage())
    cells = bench.cells(stage(), PLACES[0])
    assert {len(own) for own in cells.values()} == {1}
    assert bench.cells(stage(), Place("code", "0.9")) == {}


def test_no_cell_is_begun_that_would_end_too_late(make):
    engines = FakeEngines()
    bench = make(engines, limit_s=10.0)
    bench.run(stage())
    assert engines.started == [] and bench.missing(stage()) == 12


def test_a_closed_loop_has_so_many_runs_in_flight(make):
    engines = FakeEngines()
    bench = make(engines)
    bench.run(Stage("closed", ARMS[:1], (Place("search", CLOSED),), 1))
    assert engines.in_flight == [4]
    assert ("search", None, 12, 1) in bench.source.asked
    assert bench.rate(Place("search", CLOSED)) is None


def test_all_arms_of_a_repetition_get_the_same_runs(make):
    engines = FakeEngines()
    bench = make(engines)
    bench.run(stage(1))
    own = [asked for asked in bench.source.asked if asked[1] is not None]
    assert own == [("search", 0.5, 10, 1), ("code", 0.1, 3, 1)]
