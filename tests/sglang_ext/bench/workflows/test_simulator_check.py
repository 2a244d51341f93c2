"""The simulator beside a measurement that it made itself: then it must agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.simulate import simulate
from sglang_ext.bench.workflows.arms import ArmNames
from sglang_ext.bench.workflows.prepared import RunSource
from sglang_ext.bench.workflows.rates import Rates, machine_of
from sglang_ext.bench.workflows.simulator_check import SimulatorCheck, simulated
from sglang_ext.bench.workflows.simulator_record import SimulatorRecord
from sglang_ext.bench.workflows.store import CellStore
from sglang_ext.commands.bench_simulator import bench_simulator
from sglang_ext.driver.errors import InputError
from tests.sglang_ext.bench.workflows.cells import CALIBRATION, cell

ARMS = ("grape", "grape-deadlines", "mixed-128/prewarm")
# Where F is another one by rounding, a decision here and there is.
STEADY = ("gap mean", "gap P50", "completion P50")
MEASURED = CALIBRATION.model_copy(update={"kv_tokens": 20_000})
LATE_S, RATE = 0.002, 0.3
SETTINGS = {
    "inputs": "built in",
    "arrivals": "poisson",
    "chat": 0.0,
    "policy": "deadline",
    "ttft_steps": 40.0,
    "tbt_steps": 3.0,
    "in_flight": 2,
    "natural_stops": False,
}


@pytest.fixture
def store(tmp_path: Path, tokenizer_path: Path) -> CellStore:
    made = CellStore(tmp_path / "cells", SETTINGS | {"model": str(tokenizer_path)})
    made.save("calibration", MEASURED)
    made.save("rates", Rates(rates={"code": {"knee": RATE}}))
    return made


def measure(store: CellStore, tokenizer: Path, load: str, repetitions: int = 1, slower: float = 1.0) -> None:
    """Cells of a simulated machine. Args: slower: so many times as slow as F says where something is prefilled."""
    source, names = RunSource(tokenizer), ArmNames("deadline", 40, 3)
    machine = replace(machine_of(MEASURED), client_s=LATE_S + MEASURED.client_request_s)
    machine = replace(machine, cost=replace(machine.cost, token=machine.cost.token * slower))
    slo = Slo(40 * MEASURED.unloaded_s, 3 * MEASURED.unloaded_s)
    closed = load == "closed"
    for name in ARMS:
        for number in range(1, repetitions + 1):
            jobs = source.jobs("code", None if closed else RATE, 3, number)
            done = simulate(jobs, machine, simulated(names.arm(name)), slo, 2 if closed else None)
            own = cell(name, "code", load, number, prompts=source.prepare(jobs).digest)
            store.save_cell(own.model_copy(update={"repetition": done, "late": (LATE_S,)}))


@pytest.mark.parametrize("load", ["knee", "closed"])
def test_equal_machines_agree(store: CellStore, tokenizer_path: Path, load: str) -> None:
    measure(store, tokenizer_path, load, repetitions=2)
    (place,) = SimulatorCheck(store, tokenizer_path).run().places
    assert (place.workload, place.load, place.runs) == ("code", load, 6)
    assert place.rate == (None if load == "closed" else RATE)
    assert place.errors["all"] < 0.001
    assert set(place.arms) == set(ARMS)
    for figures in place.arms.values():
        assert {"gap P95", "switch P95", "completion P95"} <= figures.keys()
        assert all(figures[name].ratio == pytest.approx(1, abs=0.02) for name in STEADY)
        assert all(pair.ratio == pytest.approx(1, abs=0.2) for pair in figures.values())


def test_f_is_that_of_the_measured_steps(store: CellStore, tokenizer_path: Path) -> None:
    measure(store, tokenizer_path, "knee", slower=3.0)
    (place,) = SimulatorCheck(store, tokenizer_path).run().places
    assert place.cost["token"] == pytest.approx(3 * MEASURED.cost["token"], rel=0.05)


def test_the_scatter_of_the_steps_is_simulated(store: CellStore, tokenizer_path: Path) -> None:
    measure(store, tokenizer_path, "knee")
    scatter = 0.5, 1.0, 1.0, 3.5
    for own in list(store.cells()):
        steps = []
        for number, step in enumerate(own.repetition.steps):
            seconds = step.seconds * scatter[number % 4]
            steps.append(replace(step, end_s=step.start_s + seconds))
        repetition = own.repetition.model_copy(update={"steps": tuple(steps)})
        store.save_cell(own.model_copy(update={"repetition": repetition}))
    (place,) = SimulatorCheck(store, tokenizer_path).run().places
    assert place.errors["all"] > 0.3
    assert all(figures["gap mean"].ratio == pytest.approx(1.5, rel=0.2) for figures in place.arms.values())


def test_other_inputs_are_refused(store: CellStore, tokenizer_path: Path) -> None:
    measure(store, tokenizer_path, "knee")
    own = next(store.cells())
    store.save_cell(own.model_copy(update={"prompts": "others"}))
    with pytest.raises(InputError, match="cannot be made again"):
        SimulatorCheck(store, tokenizer_path).run()


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"natural_stops": True}, "natural stops"), ({"chat": None, "policy": None}, "its settings lack chat, policy")],
)
def test_what_cannot_be_simulated_is_refused(
    tmp_path: Path, tokenizer_path: Path, settings: dict[str, bool | None], message: str
) -> None:
    given = {name: value for name, value in (SETTINGS | settings).items() if value is not None}
    with pytest.raises(InputError, match=message):
        SimulatorCheck(CellStore(tmp_path, given), tokenizer_path)


def test_the_command(store: CellStore, tokenizer_path: Path, tmp_path: Path) -> None:
    measure(store, tokenizer_path, "knee")
    printed = CliRunner().invoke(bench_simulator, [str(store.folder), "--json"], catch_exceptions=False)
    assert printed.exit_code == 0
    file = tmp_path / "record.json"
    file.write_text(printed.stdout)
    shown = CliRunner().invoke(bench_simulator, ["--read", str(file)], catch_exceptions=False)
    assert "code, knee (0.3 runs/s)" in shown.stdout and "figures are within 10%" in shown.stdout
    assert SimulatorRecord.model_validate_json(printed.stdout).places[0].runs == 3


def test_the_command_needs_a_measurement(tmp_path: Path) -> None:
    for arguments, message in (([], "name the folder"), ([str(tmp_path)], "holds no measurement")):
        answer = CliRunner().invoke(bench_simulator, arguments)
        assert answer.exit_code == 2
        assert message in " ".join(answer.stderr.split())
