"""Snapshots and plans as JSON, to record a step and to plan it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from sglang_ext.policy.snapshot import Decode, Holding, Piece, Plan, Prefill, Snapshot

Part = TypeVar("Part")
FORMAT = "grape.snapshot/1"


def snapshot_to_dict(snapshot: Snapshot) -> dict[str, Any]:
    """A plain form for JSON."""
    return {"format": FORMAT, **asdict(snapshot), "decodes": [decode._asdict() for decode in snapshot.decodes]}


def snapshot_from_dict(values: dict[str, Any]) -> Snapshot:
    """The snapshot of a plain form; raises ValueError if it is none of this format."""
    values = _checked(values)
    return Snapshot(
        **{
            **values,
            "ready": _each(Prefill, values["ready"]),
            "decodes": _each(Decode, values["decodes"]),
            "holding": _each(Holding, values["holding"]),
        }
    )


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """A plain form for JSON."""
    return {"format": FORMAT, **asdict(plan)}


def plan_from_dict(values: dict[str, Any]) -> Plan:
    """The plan of a plain form; raises ValueError if it is none of this format."""
    values = _checked(values)
    return Plan(_each(Piece, values["pieces"]), tuple(values["give_up"]))


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    values = dict(values)
    found = values.pop("format", None)
    if found != FORMAT:
        raise ValueError(f"format {found!r}; a recorded step has {FORMAT!r}")
    return values


def _each(kind: Callable[..., Part], rows: list[dict[str, Any]]) -> tuple[Part, ...]:
    return tuple(kind(**row) for row in rows)
