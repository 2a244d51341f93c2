"""When jobs arrive."""

from __future__ import annotations

import pytest

from sglang_ext.bench.workload.arrivals import Poisson, Replayed, read_trace
from sglang_ext.driver.errors import InputError

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.4799600,3180,8
2023-11-16 18:17:05.9799600,110,27
"""
MOONCAKE = '{"timestamp": 1000, "input_length": 1, "output_length": 1}\n{"timestamp": 3500}\n'


def test_poisson_has_its_rate_and_is_the_same_each_time():
    times = Poisson(4.0).times(4000, seed=1)
    assert times == Poisson(4.0).times(4000, seed=1) == sorted(times)
    assert times[-1] / 4000 == pytest.approx(0.25, rel=0.1)
    assert times[:10] != Poisson(4.0).times(10, seed=2)


@pytest.mark.parametrize(("text", "stamps"), [(AZURE, (0.0, 0.5, 2.0)), (MOONCAKE, (0.0, 2.5))])
def test_traces(tmp_path, text, stamps):
    file = tmp_path / "trace"
    file.write_text(text)
    assert read_trace(file) == pytest.approx(stamps)


@pytest.mark.parametrize(
    ("text", "said"), [("a,b\n1,2\n", "is no trace"), ("TIMESTAMP\n", "no arrival"), ("{}", "KeyError"), ("", "no arr")]
)
def test_what_is_no_trace(tmp_path, text, said):
    file = tmp_path / "trace"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_trace(file)


def test_time_scale_gives_the_rate_and_keeps_the_shape():
    trace = Replayed((10.0, 11.0, 14.0))
    assert trace.times(3, 0) == [0.0, 1.0, 4.0]
    scaled = Replayed((10.0, 11.0, 14.0), rate=4.0).times(3, 0)
    assert scaled == pytest.approx([0.0, 0.125, 0.5])


def test_a_seed_chooses_the_stretch():
    trace = Replayed(tuple(float(n * n) for n in range(100)))
    assert trace.times(10, 1) == trace.times(10, 1)
    assert len({tuple(trace.times(10, seed)) for seed in range(20)}) > 10


def test_a_trace_that_is_too_short():
    with pytest.raises(InputError, match="fewer than 4"):
        Replayed((0.0, 1.0)).times(4, 0)
