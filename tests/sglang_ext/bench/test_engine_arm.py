"""Points as requests, and the steps that are taken from the log, with a scheduler whose steps have known costs."""

from __future__ import annotations

import asyncio
import json

import pytest

from sglang_ext.bench.engine_arm import ATTEMPTS, EngineArm
from sglang_ext.bench.point import POINTS, Decode, Load, Mixed, Prefill
from sglang_ext.bench.point_sample import PROBES
from sglang_ext.bench.point_text import PointText
from sglang_ext.bench.step_log import Step, StepLog
from sglang_ext.driver.errors import EngineError
from tests.sglang_ext.bench.fake_scheduler import FakeScheduler, cost


def measure(tmp_path, *points, caching=True):
    async def run():
        scheduler = FakeScheduler(tmp_path / "steps", caching)
        arm = EngineArm("fake", scheduler, StepLog(tmp_path / "steps"), PointText(32000))
        samples = [await arm.measure(point) for point in points]
        assert scheduler.running == []
        return samples

    return asyncio.run(run())


@pytest.mark.parametrize("batch", [1, 4, 16])
def test_decode_is_the_step_of_the_whole_batch(tmp_path, batch):
    for sample in measure(tmp_path, Decode(batch), Decode(batch)):
        assert sample.seconds == pytest.approx(cost(batch, 0))
        assert sample.alone_s is None
        assert sample.steps > 4


def test_prefill_is_the_sum_of_its_pieces(tmp_path):
    short, long = measure(tmp_path, Prefill(128), Prefill(2048))
    assert short.seconds == pytest.approx(cost(0, 128))
    assert short.steps == PROBES
    assert long.seconds == pytest.approx(4 * cost(0, 512))
    assert long.steps == 4


def test_a_chunk_is_measured_behind_what_is_cached(tmp_path):
    """The first time nothing is: that run only fills the cache."""
    for sample in measure(tmp_path, Prefill(16, 64), Prefill(16, 2048), Prefill(16, 64)):
        assert sample.seconds == pytest.approx(cost(0, 16))


@pytest.mark.parametrize(("batch", "tokens"), [(1, 8), (8, 64)])
def test_a_mixed_step_carries_both(tmp_path, batch, tokens):
    for sample in measure(tmp_path, Mixed(batch, tokens), Mixed(batch, tokens)):
        assert sample.seconds == pytest.approx(cost(batch, tokens))
        assert sample.alone_s == pytest.approx(cost(batch, 0))
        assert sample.steps == PROBES


def test_a_load_is_timed_from_outside(tmp_path):
    (sample,) = measure(tmp_path, Load(4, prompt=20, output=6))
    assert 0.006 < sample.seconds < 10
    assert sample.alone_s is None


def test_an_engine_without_a_cache_is_refused(tmp_path):
    with pytest.raises(EngineError, match=rf"chunk of 16 behind 64 in {ATTEMPTS} attempts"):
        measure(tmp_path, Prefill(16, 64), caching=False)


def test_names_of_points_are_their_own():
    assert len({point.label for point in POINTS}) == len(POINTS)


def test_text_that_comes_again_and_text_that_does_not():
    text = PointText(32000, seed=3)
    assert text.prefix(64) == text.prefix(2048)[:64] == text.prefix(64)
    assert text.row(0, 512) == text.row(0, 512) != text.row(1, 512)
    assert text.fresh(16) != text.fresh(16)
    assert PointText(32000, seed=3).prefix(64) == text.prefix(64)
    assert all(0 <= each < 100 for each in PointText(100).fresh(500))


def test_steps_last_until_the_next_launch(tmp_path):
    file = tmp_path / "steps"
    log = StepLog(file)
    assert log.steps() == []  # the engine has not begun
    lines = [
        {"threads": 2},
        {"launch": 1.0, "decodes": 0, "chunks": [[0, 5], [3, 1]]},
        {"launch": 1.5, "decodes": 2, "chunks": []},
        {"launch": 1.75, "decodes": 2, "chunks": []},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file.write_text(text[:-9])
    assert log.steps() == [Step(0.5, 0, ((0, 5), (3, 1)))]
    with file.open("a") as out:
        out.write(text[-9:])
    assert log.steps()[1:] == [Step(0.25, 2, ())]
    assert log.threads == 2
    log.restart()
    assert log.steps() == []


def test_waiting_for_steps_that_never_come_ends(tmp_path):
    with pytest.raises(EngineError, match="within 0 s"):
        asyncio.run(StepLog(tmp_path / "steps").wait(bool, 0.02))
