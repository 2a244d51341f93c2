"""The policy `budget`: a fixed number of tokens of early prefill per step, at lowest priority.

Complete prompts go first, since a first token waits for them, the oldest first and as far as the chunk goes. Early
prefill takes what they leave of the step's budget, the oldest task first. It reads no SLO and no cost model.
"""

from __future__ import annotations

from sglang_ext.policy.allotment import Allotment
from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.preemption import gives_up, yield_order
from sglang_ext.policy.snapshot import Holding, Plan, Snapshot
from sglang_ext.policy.starvation_guard import candidates
from sglang_ext.policy.step_times import StepTimes

# Beside any number of complete prompts early prefill gets this part of the budget, so that it never stands still.
LEAST = 4


class BudgetPolicy:
    """A step budget alone."""

    name = "budget"
    switches = frozenset({"preemption"})

    def __init__(self, configuration: Configuration, times: StepTimes) -> None:
        self.configuration = configuration
        self.times = times

    def plan(self, snapshot: Snapshot) -> Plan:
        """Complete prompts up to the chunk, then early ones up to the budget."""
        give_up = gives_up(snapshot, self.configuration, self.times)
        room = Allotment(snapshot, self.configuration.reserve)
        ready = candidates(snapshot)
        if give_up:
            ready = tuple(prefill for prefill in ready if prefill.rid not in give_up)
        complete = [prefill for prefill in ready if prefill.complete]
        pressed = snapshot.short or give_up
        early = [] if pressed else [prefill for prefill in ready if not prefill.complete]
        least = self.configuration.budget // LEAST if early else 0
        asked = 0
        for prefill in complete:
            room.give(prefill, room.chunk - least)
            asked += prefill.pending
        left = room.chunk
        if snapshot.decodes or asked:
            left = max(self.configuration.budget - asked, least)
        for prefill in early:
            if left <= 0:
                break
            left -= room.give(prefill, left)
        return Plan(room.pieces(), give_up)

    def yields_first(self, holding: tuple[Holding, ...]) -> tuple[str, ...]:
        return yield_order(holding, self.configuration, self.times)
