"""A plugin that lets tasks give up their KV at random steps, whatever the policy says: the ids must not change."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

# Part of the steps with KV to give in which somebody gives it.
SHARE = 0.2


def register() -> None:
    """Wrap every policy that plans. All ranks draw the same, since they plan the same steps."""
    from sglang_ext.policy import policies

    for name, kind in policies._POLICIES.items():
        if name != "stock":
            policies._POLICIES[name] = _forced(kind)


def _forced(kind: Any) -> Any:
    class Forced(kind):  # type: ignore[misc]
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._random = random.Random(17)

        def plan(self, snapshot: Any) -> Any:
            plan = super().plan(snapshot)
            others = [each.rid for each in snapshot.holding if each.rid not in plan.give_up]
            if not others or self._random.random() > SHARE:
                return plan
            return replace(plan, give_up=(*plan.give_up, self._random.choice(others)))

    return Forced
