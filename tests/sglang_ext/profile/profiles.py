"""A small profile for tests."""

from __future__ import annotations

from typing import Any

from sglang_ext.policy.cost_model import CostModel
from sglang_ext.profile.engine_key import EngineKey
from sglang_ext.profile.profile import Measurement, Profile

KEY = EngineKey(
    model="a-model",
    shape="LlamaForCausalLM 2 64 128 4 2 1000",
    dtype="bfloat16",
    device="cpu",
    processor="a CPU",
    threads=2,
    ranks=1,
    attention="grape_cpu",
    options=(),
    sglang="0.5.23",
    torch="2.14.1",
)
COST = CostModel(fixed=0.02, row=0.001, token=0.0009, kv=2e-6, attention=4e-8, errors={"all": 0.04, "mixed": 0.05})


def profile(**values: Any) -> Profile:
    """A profile of `KEY`'s engine, unless values say otherwise; names of the key's fields change the key."""
    key = {name: values.pop(name) for name in list(values) if name in EngineKey.model_fields}
    given = {
        "key": KEY.model_copy(update=key),
        "cost": COST,
        "noise": {"all": 0.02},
        "drift": {"all": 0.03},
        "kv_tokens": 4096,
        "chunk": 512,
        "running": 64,
        "overlap": "host",
        "started": "2026-01-01T00:00:00+00:00",
        "length_s": 60.0,
        "measurements": (
            Measurement(setting=0, visit=0, rows=2, context=200, pieces=(), seconds=(0.021, 0.022)),
            Measurement(setting=0, visit=0, rows=2, context=210, pieces=((64, 16),), seconds=(0.04,), held_out=True),
            Measurement(setting=1, visit=1, rows=0, context=0, pieces=((0, 100), (10, 5)), seconds=(0.1, 0.11)),
        ),
    }
    return Profile(**{**given, **values})
