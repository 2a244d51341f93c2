"""Random snapshots that an engine could give."""

from __future__ import annotations

from hypothesis import strategies as st

from sglang_ext.policy.configuration import EVICTION_ORDERS, Configuration
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.policy import Policy
from sglang_ext.policy.snapshot import Decode, Holding, Prefill, Snapshot
from sglang_ext.policy.step_times import StepTimes

CPU = CostModel(fixed=0.042, row=0.002, token=0.00135)
GPU = CostModel(fixed=0.0117, kv=1e-7, attention=1e-9, knee=140.0, beyond=8e-5)
NOW = 100.0

models = st.sampled_from([CPU, GPU])


@st.composite
def policies(draw: st.DrawFn, names: tuple[str, ...] = ("paper", "deadline", "budget")) -> Policy:
    """A policy with any of its parts off."""
    name = draw(st.sampled_from(names))
    model = draw(models)
    parts = sorted(new_policy(name, Configuration(), StepTimes(model)).switches)
    configuration = Configuration(
        off=frozenset(draw(st.lists(st.sampled_from(parts), max_size=2))),
        grant_every=draw(st.integers(1, 3)),
        weight=draw(st.sampled_from([None, 1, 16])),
        eviction=draw(st.sampled_from(EVICTION_ORDERS)),
        assumed_tbt=draw(st.sampled_from([0.0, 3.0])),
    )
    return new_policy(name, configuration, StepTimes(model))


@st.composite
def decodes(draw: st.DrawFn) -> Decode:
    return Decode(
        rid="",
        run=f"run{draw(st.integers(0, 5))}",
        context=draw(st.integers(1, 600)),
        last_token_s=draw(st.none() | st.floats(NOW - 0.2, NOW)),
        tbt_s=draw(st.none() | st.sampled_from([0.001, 0.05, 0.1, 0.5])),
    )


@st.composite
def prefills(draw: st.DrawFn, page: int) -> Prefill:
    complete = draw(st.booleans())
    has_row = draw(st.booleans())
    context = draw(st.integers(1, 300)) if has_row else page * draw(st.integers(0, 300 // page))
    hops = 0 if complete else draw(st.integers(1, 4))
    return Prefill(
        rid="",
        run=f"run{draw(st.integers(0, 5))}",
        order=0,
        pending=draw(st.integers(1, 400)),
        context=context,
        has_row=has_row,
        complete=complete,
        stalled=complete and draw(st.booleans()),
        hops=hops,
        to_come=0 if complete else draw(st.integers(0, 80)),
        rest_steps=0.0 if complete else draw(st.floats(1.0, 300.0)),
        since_s=draw(st.floats(NOW - 20, NOW)),
        deadline_s=draw(st.none() | st.floats(NOW - 1, NOW + 5)) if complete else None,
        waited=draw(st.integers(0, 4)),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    page = draw(st.sampled_from([1, 16]))
    ready = [_numbered(each, i) for i, each in enumerate(draw(st.lists(prefills(page), max_size=10)))]
    held = [
        Holding(p.rid, p.context, p.order, p.complete, p.hops, p.rest_steps, draw(st.floats(NOW - 9, NOW)))
        for p in ready
        if p.has_row
    ]
    rows = draw(st.lists(decodes(), max_size=6))
    return Snapshot(
        now_s=NOW,
        ready=tuple(ready),
        decodes=tuple(Decode(f"d{i}", d.run, d.context, d.last_token_s, d.tbt_s) for i, d in enumerate(rows)),
        holding=tuple(held),
        kv_free=page * draw(st.integers(0, 2000 // page)),
        rows_free=draw(st.integers(0, 6)),
        seats_free=draw(st.integers(0, 6)),
        chunk=draw(st.sampled_from([64, 512])),
        page=page,
        short=draw(st.booleans()),
    )


def _numbered(prefill: Prefill, order: int) -> Prefill:
    values = {name: getattr(prefill, name) for name in Prefill.__dataclass_fields__}
    return Prefill(**values | {"rid": f"p{order}", "order": order})
