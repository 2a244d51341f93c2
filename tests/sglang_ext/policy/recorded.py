"""Steps of a real engine, recorded by `python -m tests.engine.record_snapshots`, planned again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.snapshot import Plan, Snapshot
from sglang_ext.policy.snapshot_json import snapshot_from_dict
from sglang_ext.policy.step_times import StepTimes

FILE = Path(__file__).parent / "recorded_snapshots.json"


def parts(policy: str) -> list[str]:
    """The parts of a policy that can be switched off."""
    return sorted(new_policy(policy, Configuration(), StepTimes(CostModel(fixed=1.0))).switches)


def steps_of(line: dict[str, Any]) -> tuple[CostModel, Snapshot]:
    return CostModel.from_dict(line["model"]), snapshot_from_dict(line["snapshot"])


def plan(policy: str, off: frozenset[str], model: CostModel, snapshot: Snapshot) -> Plan | None:
    return new_policy(policy, Configuration(off=off), StepTimes(model)).plan(snapshot)


def differs(policy: str, part: str, model: CostModel, snapshot: Snapshot) -> bool:
    """Whether the plan is another one without a part of the policy."""
    return plan(policy, frozenset(), model, snapshot) != plan(policy, frozenset({part}), model, snapshot)
