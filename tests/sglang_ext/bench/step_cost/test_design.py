"""What settings a profile is made of."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.bench.step_cost.design import MOST_PIECES, Design, Limits
from sglang_ext.bench.step_cost.profile_run import Settings, limits_of, overlap


@given(
    st.builds(
        Limits,
        rows=st.integers(1, 64),
        context=st.integers(16, 4000),
        kv=st.integers(64, 40_000),
        tokens=st.integers(1, 4096),
        prefix=st.integers(16, 4000),
    ),
    st.integers(0, 9),
)
def test_settings_keep_to_the_limits(limits: Limits, seed: int) -> None:
    design = Design(limits, seed=seed)
    for _ in range(20):
        setting = design.draw()
        assert len(setting.contexts) <= limits.rows
        assert all(16 <= context <= limits.context for context in setting.contexts)
        assert sum(setting.contexts) <= max(limits.kv, 16 * len(setting.contexts))
        for probe in setting.probes:
            assert 1 <= len(probe) <= MOST_PIECES
            assert all(0 <= prefix <= limits.prefix and tokens >= 1 for prefix, tokens in probe)
            assert sum(t for _, t in probe) <= max(len(probe), limits.tokens - len(setting.contexts))


def test_they_are_spread_log_uniform() -> None:
    design = Design(Limits(rows=64, context=2048, kv=1 << 20, tokens=1 << 20, prefix=2048))
    drawn = [design.draw() for _ in range(2000)]
    rows = [math.log2(len(each.contexts)) for each in drawn if each.contexts]
    assert 0.1 < sum(not each.contexts for each in drawn) / len(drawn) < 0.2
    assert 2.8 < sum(rows) / len(rows) < 3.2
    singles = [math.log2(probe[0][1]) for each in drawn for probe in each.probes if len(probe) == 1]
    assert 9.5 < sum(singles) / len(singles) < 10.5


def test_some_settings_come_again_under_their_number() -> None:
    settings = Settings(Design(Limits(8, 100, 1000, 64, 100)), seed=0)
    drawn = [settings.draw() for _ in range(200)]
    by_number = dict(drawn)
    assert all(by_number[number] == setting for number, setting in drawn)
    assert 130 < len(by_number) < 190


def test_limits_of_an_engine() -> None:
    resolved = {"max_total_num_tokens": 131072, "max_req_input_len": 8186, "chunked_prefill_size": 512}
    assert limits_of(resolved | {"max_running_requests": 64}, 12288) == Limits(63, 2048, 12288, 512, 2048)
    small = {"max_total_num_tokens": 1024, "max_req_input_len": 2000, "chunked_prefill_size": -1}
    assert limits_of(small | {"max_running_requests": 4}, 12288) == Limits(3, 128, 256, 128, 128)
    assert (overlap("cpu", False), overlap("cuda", False), overlap("cuda", True)) == ("host", "device", "none")
