"""The policy `deadline`: fill a step to the ridge, and go beyond it only for a deadline.

From this project's simulation of ideal decisions: filling every step up to the SLO, as the paper does, puts the P95
of the gaps at the SLO; a fixed budget at the ridge gets most of the gain and misses first tokens. So here each prompt
has a deadline in steps, and a step takes what is free, or what it must take so that all deadlines can be kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import Load
from sglang_ext.policy.preemption import yield_order
from sglang_ext.policy.snapshot import Holding, Plan, Prefill, Snapshot
from sglang_ext.policy.step_plan import StepPlan
from sglang_ext.policy.step_times import StepTimes


class DeadlinePolicy:
    """Prompts that a stream waits for first, then the earliest deadline."""

    name = "deadline"
    switches = frozenset({"priority", "region", "stage2", "preemption", "edge_weight", "deadlines", "ridge"})

    def __init__(self, configuration: Configuration, times: StepTimes) -> None:
        self.configuration = configuration
        self.times = times

    def plan(self, snapshot: Snapshot) -> Plan:
        """Short last pieces at once; then by deadline, up to the budget and within the feasible region."""
        configuration = self.configuration
        step = StepPlan(snapshot, configuration, self.times, configuration.weight)
        ready = step.ready()
        if not ready:
            return step.plan()
        load = Load.of(snapshot.decodes)
        step_s = self.times.time(load if load.rows else Load(rows=1))
        due = {prefill.rid: self._due(prefill, snapshot.now_s, step_s) for prefill in ready}
        if not snapshot.decodes:
            budget = snapshot.chunk
        else:
            free = self._free(load, snapshot.chunk) if configuration.has("ridge") else 0
            rate = self._rate(ready, due) if configuration.has("deadlines") else 0
            budget = max(free, rate)
        order = self._order(ready, due, snapshot.now_s, step_s) if configuration.has("priority") else ready
        for prefill in order:
            if budget > 0 or self._last_piece(prefill):
                budget -= step.give(prefill, prefill.pending if self._last_piece(prefill) else budget)
            elif not prefill.stalled:
                break
            if step.full():
                break
        return step.plan()

    def yields_first(self, holding: tuple[Holding, ...]) -> tuple[str, ...]:
        return yield_order(holding, self.configuration, self.times)

    def _free(self, load: Load, chunk: int) -> int:
        """Tokens up to the ridge; too few for a piece are none."""
        free = self.times.model.ridge(load, self.configuration.ridge_share, chunk)
        return free if free >= self.configuration.weight else 0

    def _due(self, prefill: Prefill, now_s: float, step_s: float) -> float:
        """The steps, at least one, within which the rest of a prompt should be in."""
        configuration = self.configuration
        if prefill.stalled:
            steps = configuration.stalled_steps - (now_s - prefill.since_s) / step_s
        elif prefill.complete:
            steps = configuration.ttft_share * (self._first_token_s(prefill) - now_s) / step_s
        else:
            steps = configuration.upstream_share * prefill.rest_steps
        return max(1.0, steps)

    def _first_token_s(self, prefill: Prefill) -> float:
        if prefill.deadline_s is not None:
            return prefill.deadline_s
        return prefill.since_s + self.configuration.assumed_ttft * self.times.model.decode_step()

    def _rate(self, ready: Iterable[Prefill], due: dict[str, float]) -> int:
        """Tokens per step with which all deadlines can be kept: the most of work due by d, over d."""
        work, rate = 0, 0.0
        for prefill in sorted(ready, key=lambda each: due[each.rid]):
            work += prefill.pending + prefill.to_come
            rate = max(rate, work / due[prefill.rid])
        return math.ceil(rate)

    def _last_piece(self, prefill: Prefill) -> bool:
        """The short rest of a prompt that its run's stream waits for goes into the very next step."""
        return prefill.stalled and prefill.pending <= self.configuration.weight

    def _order(self, ready: list[Prefill], due: dict[str, float], now_s: float, step_s: float) -> list[Prefill]:
        def key(prefill: Prefill) -> tuple[int, float, int]:
            if prefill.stalled:
                return 1, prefill.pending, prefill.order
            if prefill.complete and self._late(prefill, now_s):
                return 0, prefill.order, prefill.order
            return 2, due[prefill.rid], prefill.order

        return sorted(ready, key=key)

    def _late(self, prefill: Prefill, now_s: float) -> bool:
        """Whether a run has waited a multiple of its TTFT for its first token."""
        ttft = self._first_token_s(prefill) - prefill.since_s
        return now_s - prefill.since_s > self.configuration.late * ttft
