"""The order of the chains, and what is kept of them."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from grape_dsl.encoding import TextEncoder
from sglang_ext.bench import gap_measurement
from sglang_ext.bench.arms import ARMS, engines
from sglang_ext.bench.chain import ChainShape, FreshText
from sglang_ext.bench.gap_measurement import GapMeasurement
from tests.sglang_ext.bench.fake_source import FakeSource
from tests.sglang_ext.bench.test_clients import figures


@pytest.fixture(autouse=True)
def no_rest(monkeypatch):
    """These engines need none between chains."""
    monkeypatch.setattr(gap_measurement, "_REST_SECONDS", 0.0)


@pytest.fixture(scope="module")
def encoder(tokenizer_path):
    from tokenizers import Tokenizer

    return TextEncoder(Tokenizer.from_file(str(tokenizer_path / "tokenizer.json")))


def test_text_has_the_sizes_asked_for_and_is_new_each_time(encoder):
    shape = ChainShape(known=100, output=32)
    text = FreshText(encoder, seed=1)
    first, second = text.chain(shape), text.chain(shape)
    assert (len(first.start), len(first.known), len(first.suffix)) == (64, 100, 8)
    assert first.known[:16] != second.known[:16]
    assert FreshText(encoder, seed=1).chain(shape) == first
    assert text.chain(ChainShape(known=0, output=32)).known == []


def test_chains_are_measured_in_turns(encoder):
    sources = {kind.name: FakeSource(figures=figures) for kind in engines(ARMS)}
    done = []
    shapes = [ChainShape(0, 4, start=6), ChainShape(20, 4, start=6)]
    measurement = GapMeasurement(ARMS, sources, FreshText(encoder, 0), shapes, 2, 16, done.append)
    cells = asyncio.run(measurement.run())
    assert len(done) == measurement.chains == 6 * (1 + 2 * 2)
    order = [what.rpartition(", ")[2] for what in done]
    assert order[:6] == ["warming up"] * 6
    assert order[6:12] == order[12:18] == [arm.name for arm in ARMS]
    assert order[18:24] == [arm.name for arm in (*ARMS[1:], ARMS[0])]
    assert [(cell.known, cell.output) for cell in cells] == [(0, 4), (20, 4)]
    assert all(len(arm.samples) == 2 for cell in cells for arm in cell.arms.values())


def test_each_arm_goes_to_its_engine(encoder):
    sources = {kind.name: FakeSource(figures=figures) for kind in engines(ARMS)}
    measurement = GapMeasurement(ARMS, sources, FreshText(encoder, 0), [ChainShape(20, 4, start=6)], 1, 16)
    asyncio.run(measurement.run())
    hinted = {name: Counter(r.hint is not None for r in source.requests) for name, source in sources.items()}
    assert hinted["grape"] == {True: 4, False: 4}
    assert hinted["grape-static"] == {True: 4}
    assert True not in hinted["stock"] + hinted["stock-default"]
