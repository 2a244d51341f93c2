"""Short ways to write a snapshot, for the policies' tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sglang_ext.policy.snapshot import Decode, Holding, Prefill, Snapshot


def prefill(rid: str, pending: int, order: int = 0, **values: Any) -> Prefill:
    """A prompt of a run of its own, unless a run is named."""
    return Prefill(rid=rid, run=values.pop("run", f"run-{rid}"), order=order, pending=pending, **values)


def complete(rid: str, pending: int, order: int = 0, **values: Any) -> Prefill:
    return prefill(rid, pending, order, complete=True, **values)


def decode(rid: str, context: int = 100, **values: Any) -> Decode:
    return Decode(rid=rid, run=values.pop("run", f"run-{rid}"), context=context, **values)


def holding(rid: str, tokens: int, order: int = 0, complete: bool = False, **values: Any) -> Holding:
    return Holding(rid, tokens, order, complete, **{"hops": 0 if complete else 1} | values)


EMPTY = Snapshot(now_s=10.0, ready=(), decodes=(), holding=(), kv_free=10_000, rows_free=64, seats_free=64, chunk=2048)


def snapshot(
    ready: Sequence[Prefill] = (), decodes: Sequence[Decode] = (), held: Sequence[Holding] = (), **values: Any
) -> Snapshot:
    """A snapshot with room for everything, unless values say otherwise."""
    return replace(EMPTY, ready=tuple(ready), decodes=tuple(decodes), holding=tuple(held), **values)
