"""A plugin that writes down what a policy is told: each step's snapshot and the cost model of that moment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FILE = "SNAPSHOT_FILE"


def register() -> None:
    """Wrap every policy that plans; the lines go to the file that the variable names."""
    from sglang_ext.policy import policies

    for name, kind in policies._POLICIES.items():
        policies._POLICIES[name] = _recorded(kind)


def _recorded(kind: Any) -> Any:
    from sglang_ext.policy.snapshot_json import snapshot_to_dict

    class Recorded(kind):  # type: ignore[misc]
        def plan(self, snapshot: Any) -> Any:
            if snapshot.ready or snapshot.holding:
                line = {"model": self.times.model.as_dict(), "snapshot": snapshot_to_dict(snapshot)}
                with Path(os.environ[FILE]).open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
            return super().plan(snapshot)

    return Recorded
