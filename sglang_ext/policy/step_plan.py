"""A step as it is planned: pieces within all limits that there are."""

from __future__ import annotations

from sglang_ext.policy.allotment import Allotment
from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.feasible_region import Region
from sglang_ext.policy.preemption import gives_up
from sglang_ext.policy.snapshot import Plan, Prefill, Snapshot
from sglang_ext.policy.starvation_guard import candidates, due
from sglang_ext.policy.step_times import StepTimes


class StepPlan:
    """What gives KV back, what the starvation guard grants, and the room that is left for a policy to fill.

    Under KV pressure, or with the part `stage2` off, only complete prompts get any.
    """

    def __init__(self, snapshot: Snapshot, configuration: Configuration, times: StepTimes) -> None:
        self._snapshot = snapshot
        self._give_up = gives_up(snapshot, configuration, times)
        self.early = configuration.has("stage2") and not (snapshot.short or self._give_up)
        self.room = Allotment(snapshot, configuration.reserve)
        self.region = Region.of(snapshot, times, configuration)
        self.decodes = self.region.load
        granted = due(snapshot, self.room, configuration, self._give_up)
        if granted is not None:
            self.region.take(granted, 0, self.room.give(granted, configuration.grant_tokens, up=True))

    def ready(self, weight: int) -> list[Prefill]:
        """Prompts that may have tokens in this step, oldest first.

        Args:
            weight: least tokens of a piece before its prompt is complete, if its program asks for no less.
        """
        gone, ready = self._give_up, candidates(self._snapshot)
        if gone:
            ready = tuple(prefill for prefill in ready if prefill.rid not in gone)
        if not self.early:
            return [prefill for prefill in ready if prefill.complete]
        return [prefill for prefill in ready if prefill.complete or prefill.pending >= min(weight, prefill.weight)]

    def give(self, prefill: Prefill, tokens: int) -> int:
        """Give a prompt up to `tokens` more, as far as all limits go; returns how many it got."""
        most = min(tokens, self.room.most(prefill))
        if most <= 0:
            return 0
        given = self.room.given(prefill)
        got = self.room.give(prefill, self.region.room(prefill, given, most))
        self.region.take(prefill, given, got)
        return got

    def left(self) -> int:
        """Tokens that a fresh complete prompt could still get."""
        return self.region.left(self.room.chunk)

    def full(self) -> bool:
        """Whether nothing more can get into the step."""
        return self.region.left(min(1, self.room.chunk)) <= 0

    def plan(self) -> Plan:
        """Everything that was given."""
        return Plan(self.room.pieces(), self._give_up)
