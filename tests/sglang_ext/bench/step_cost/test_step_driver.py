"""Settings as requests, with a scheduler whose steps have known costs; and a whole measurement on it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from sglang_ext.bench.point_text import PointText
from sglang_ext.bench.step_cost import step_driver
from sglang_ext.bench.step_cost.design import Design, Limits, Setting
from sglang_ext.bench.step_cost.measured import Measurements, fitted
from sglang_ext.bench.step_cost.profile_run import Settings, measure
from sglang_ext.bench.step_cost.step_driver import REPEATS, StepDriver
from sglang_ext.bench.step_log import Step, StepLog
from sglang_ext.driver.errors import EngineError
from sglang_ext.policy.cost_model import Load
from tests.sglang_ext.bench.fake_scheduler import FakeScheduler, cost

LIMITS = Limits(rows=6, context=200, kv=800, tokens=64, prefix=200)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake scheduler takes a millisecond for a step, whatever it says of it."""
    monkeypatch.setattr(step_driver, "LONG_OUTPUT", 1 << 20)
    monkeypatch.setattr(step_driver, "_STEP_SECONDS", 0.001)


def driver(folder: Path) -> tuple[StepDriver, FakeScheduler]:
    scheduler = FakeScheduler(folder / "steps")
    return StepDriver(scheduler, StepLog(folder / "steps"), PointText(32000), LIMITS), scheduler


def run(folder: Path, *settings: Setting) -> list[list[Step]]:
    async def main() -> list[list[Step]]:
        made, scheduler = driver(folder)
        await made.prepare()
        found = [await made.run(setting) for setting in settings]
        assert scheduler.running == []
        return found

    return asyncio.run(main())


def test_a_setting_gives_its_decodes_and_its_probes(tmp_path: Path) -> None:
    probes = (((0, 20),), ((100, 1),), ((50, 8), (0, 9)))
    (steps,) = run(tmp_path, Setting((40, 90, 40), probes))
    mixed, alone = [step for step in steps if step.chunks], [step for step in steps if not step.chunks]
    # Pieces that are sent together come together if no step begins between them.
    assert sorted(chunk for step in mixed for chunk in step.chunks) == sorted(
        piece for probe in probes for piece in probe * REPEATS
    )
    for step in mixed:
        assert step.seconds == pytest.approx(cost(step.decodes, sum(tokens for _, tokens in step.chunks)))
        assert step.context > 170
    assert sum(step.decodes == 3 for step in alone) >= REPEATS * len(probes)
    assert all(step.decodes >= 3 for step in steps), "no step of the start or the end"


def test_prefill_without_decodes(tmp_path: Path) -> None:
    (steps,) = run(tmp_path, Setting((), (((0, 30),), ((64, 4),))))
    prefills = [step for step in steps if step.chunks]
    assert [step.chunks for step in prefills] == [((0, 30),), ((64, 4),)] * REPEATS
    assert [step.seconds for step in prefills] == pytest.approx([cost(0, 30), cost(0, 4)] * REPEATS)
    assert not any(step.paused for step in steps)


def test_no_probe_begins_after_the_end(tmp_path: Path) -> None:
    async def main() -> list[Step]:
        made, _ = driver(tmp_path)
        return await made.run(Setting((20,), (((0, 5),),)), until=time.monotonic() - 1)

    assert all(not step.chunks for step in asyncio.run(main()))


def test_decodes_that_never_come_together_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_driver, "LONG_OUTPUT", 2)
    monkeypatch.setattr(step_driver, "_WAIT_SECONDS", 0.05)
    with pytest.raises(EngineError, match="2 sequences did not come to decode together within 0 s"):
        run(tmp_path, Setting((20, 20), (((0, 5),),)))


def test_a_measurement_finds_the_schedulers_costs(tmp_path: Path) -> None:
    told: list[Setting] = []

    async def main() -> Measurements:
        made, _ = driver(tmp_path)
        await made.prepare()
        return await measure(made, Settings(Design(LIMITS), seed=0), time.monotonic() + 4.0, told.append)

    found = fitted(asyncio.run(main()).list())
    assert len(told) > 5
    assert found.noise["all"] < 0.01
    assert found.cost.errors["all"] < 0.01
    for rows, tokens in ((1, 0), (5, 0), (4, 40), (0, 50)):
        assert found.cost.time(Load(rows, tokens)) == pytest.approx(cost(rows, tokens), rel=0.03)
