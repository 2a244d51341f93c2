"""The policy `paper`: two-stage selection within the feasible region.

Grape paper (SC 2026), sections III-D and III-E. Stage 1 goes round the runs, the most urgent one first, and takes one
highest-priority micro-task of each; a running decode is its run's. Stage 2 (prevision) gives the room that is left to
the other micro-tasks by their distance from their queue's head. A prompt longer than the room is cut to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.edge_weight import EdgeWeights
from sglang_ext.policy.preemption import yield_order
from sglang_ext.policy.priority import by_distance
from sglang_ext.policy.snapshot import Decode, Holding, Plan, Prefill, Snapshot
from sglang_ext.policy.step_plan import StepPlan
from sglang_ext.policy.step_times import StepTimes


class PaperPolicy:
    """The policy of the paper."""

    name = "paper"
    switches = frozenset({"priority", "region", "stage2", "preemption", "edge_weight"})

    def __init__(self, configuration: Configuration, times: StepTimes) -> None:
        self.configuration = configuration
        self.times = times
        self._weights = EdgeWeights(configuration, times)

    def plan(self, snapshot: Snapshot) -> Plan:
        """All decodes, then stage 1, then stage 2, as far as the feasible region goes."""
        step = StepPlan(snapshot, self.configuration, self.times)
        ready = step.ready(self._weights.at(snapshot, step.decodes))
        heads = self._heads(ready, snapshot.decodes)
        self._share(step, self._round_robin(heads))
        if step.early and not step.full():
            chosen = {prefill.rid for prefill in heads}
            self._fill(step, self._by_distance(each for each in ready if each.rid not in chosen))
        return step.plan()

    def yields_first(self, holding: tuple[Holding, ...]) -> tuple[str, ...]:
        return yield_order(holding, self.configuration, self.times)

    def _heads(self, ready: list[Prefill], decodes: Iterable[Decode]) -> list[Prefill]:
        """Micro-tasks of the highest priority in their run: complete prompts, or the nearest one of an idle run."""
        heads = [prefill for prefill in ready if prefill.complete]
        busy = {prefill.run for prefill in heads} | {decode.run for decode in decodes}
        nearest: dict[str, Prefill] = {}
        for prefill in ready:
            if prefill.run not in busy:
                other = nearest.get(prefill.run)
                if other is None or by_distance(prefill) < by_distance(other):
                    nearest[prefill.run] = prefill
        return [*heads, *nearest.values()]

    def _round_robin(self, heads: list[Prefill]) -> list[Prefill]:
        """One of each run by urgency, then the second ones, and so on; with `priority` off the oldest first."""
        if not self.configuration.has("priority"):
            return sorted(heads, key=lambda prefill: prefill.order)
        turns: dict[str, int] = {}
        order = []
        for urgency, prefill in sorted(((self._urgency(each), each) for each in heads), key=lambda pair: pair[0]):
            turn = turns.get(prefill.run, 0)
            turns[prefill.run] = turn + 1
            order.append((turn, urgency, prefill))
        return [prefill for _, _, prefill in sorted(order, key=lambda entry: entry[:2])]

    def _urgency(self, prefill: Prefill) -> tuple[bool, float, int]:
        """By the deadline of the first token; what nothing waits for yet comes after all that has one."""
        if not prefill.complete:
            return True, prefill.since_s, prefill.order
        if prefill.deadline_s is not None:
            return False, prefill.deadline_s, prefill.order
        configuration = self.configuration
        steps = configuration.assumed_tbt if prefill.stalled else configuration.assumed_ttft
        return False, prefill.since_s + steps * self.times.model.decode_step(), prefill.order

    def _share(self, step: StepPlan, heads: list[Prefill]) -> None:
        """Equal shares first, so that a short prompt never waits behind a long one's chunks; then what is left."""
        if not heads:
            return
        share = max(self.configuration.grant_tokens, step.left() // len(heads))
        cut = []
        for prefill in heads:
            rest = prefill.pending - step.room.given(prefill)
            if step.give(prefill, min(share, rest)) < rest:
                cut.append(prefill)
            if step.full():
                return
        self._fill(step, cut)

    def _by_distance(self, rest: Iterable[Prefill]) -> list[Prefill]:
        return sorted(rest, key=by_distance if self.configuration.has("priority") else lambda prefill: prefill.order)

    def _fill(self, step: StepPlan, order: Iterable[Prefill]) -> None:
        for prefill in order:
            rest = prefill.pending - step.room.given(prefill)
            if rest > 0 and step.give(prefill, rest) < rest and step.full():
                return
