"""What every policy is: an object that answers a snapshot with a plan."""

from __future__ import annotations

from typing import Protocol

from sglang_ext.policy.snapshot import Holding, Plan, Snapshot


class Policy(Protocol):
    """A scheduling policy. Equal snapshots give equal plans: all it knows besides is its configuration and F.

    A plan does not name decodes: they are all in the step, where SGLang can mix them with prefill.
    """

    name: str
    switches: frozenset[str]
    """Parts of it that can be switched off."""

    def plan(self, snapshot: Snapshot) -> Plan | None:
        """The plan for one step; None leaves the step to SGLang's own order."""

    def yields_first(self, holding: tuple[Holding, ...]) -> tuple[str, ...]:
        """All tasks of `holding`, the one that gives its KV back first in front."""
