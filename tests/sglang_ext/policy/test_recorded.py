"""What each part of each policy changes, on steps of a real engine."""

from __future__ import annotations

import json

import pytest

from sglang_ext.policy.policies import policy_names
from sglang_ext.policy.snapshot_json import snapshot_to_dict
from tests.sglang_ext.policy.recorded import FILE, differs, parts, plan, steps_of

RECORDED = json.loads(FILE.read_text())
SWITCHES = [(policy, part) for policy in policy_names() for part in parts(policy)]


@pytest.mark.parametrize(("policy", "part"), SWITCHES)
def test_a_part_changes_a_recorded_plan(policy: str, part: str) -> None:
    assert differs(policy, part, *steps_of(RECORDED[f"{policy} {part}"]))


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_step_is_planned_within_its_limits(name: str) -> None:
    """Nothing is planned that the engine did not have, and the same again the next time."""
    model, snapshot = steps_of(RECORDED[name])
    assert json.loads(json.dumps(snapshot_to_dict(snapshot))) == RECORDED[name]["snapshot"]
    pending = {prefill.rid: prefill.pending for prefill in snapshot.ready}
    for policy in ("budget", "deadline", "paper"):
        made = plan(policy, frozenset(), model, snapshot)
        assert made is not None
        assert all(0 < piece.tokens <= pending[piece.rid] for piece in made.pieces)
        assert sum(piece.tokens for piece in made.pieces) <= snapshot.chunk
        assert made == plan(policy, frozenset(), model, snapshot)
