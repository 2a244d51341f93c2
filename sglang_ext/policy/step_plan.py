"""A step as it is planned: pieces within all limits that there are."""

from __future__ import annotations

from sglang_ext.policy.allotment import Allotment
from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.feasible_region import Region
from sglang_ext.policy.preemption import gives_up
from sglang_ext.policy.snapshot import Plan, Prefill, Snapshot
from sglang_ext.policy.starvation_guard import due
from sglang_ext.policy.step_times import StepTimes


class StepPlan:
    """What gives KV back, what the guard grants, and the room that is left for a policy to fill.

    Args:
        weight: least tokens of a streamed piece.
    """

    def __init__(self, snapshot: Snapshot, configuration: Configuration, times: StepTimes, weight: int) -> None:
        self._snapshot = snapshot
        self._weight = weight if configuration.has("edge_weight") else 1
        self._give_up = gives_up(snapshot, configuration, times)
        pressed = snapshot.short or bool(self._give_up)
        self.early = configuration.has("stage2") and not pressed
        self.room = Allotment(snapshot, configuration.reserve, early=self.early)
        self.region = Region.of(snapshot, times, configuration)
        granted = due(snapshot, self.room, configuration)
        if granted is not None and granted.rid not in self._give_up:
            self._put(granted, self.room.give(granted, configuration.grant_tokens, up=True))

    def ready(self) -> list[Prefill]:
        """Prompts that may have tokens in this step, oldest first."""
        early, least, gone = self.early, self._weight, self._give_up
        return [
            prefill
            for prefill in self._snapshot.ready
            if (prefill.complete or (early and prefill.pending >= least)) and prefill.rid not in gone
        ]

    def give(self, prefill: Prefill, tokens: int) -> int:
        """Give a prompt up to `tokens` more, as far as all limits go; returns how many it got."""
        given = self.room.given(prefill)
        most = min(tokens, self.room.most(prefill))
        got = self.room.give(prefill, self.region.room(prefill, given, most))
        if got:
            self.region.take(prefill, given, got)
        return got

    def full(self) -> bool:
        """Whether nothing more can get into the step."""
        return self.room.chunk <= 0 or self.region.full()

    def plan(self) -> Plan:
        return Plan(self.room.pieces(), self._give_up)

    def _put(self, prefill: Prefill, tokens: int) -> None:
        self.region.take(prefill, 0, tokens)
