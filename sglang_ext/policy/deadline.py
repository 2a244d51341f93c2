"""The policy `deadline`: fill a step to the ridge, and go beyond it only for a deadline.

From this project's simulation of ideal decisions: filling every step up to the SLO, as the paper does, puts the P95
of the gaps at the SLO; a fixed budget at the ridge gets most of the gain and misses first tokens. So here each prompt
has a deadline in steps, and a step takes what is free, or what it must take so that all deadlines can be kept. A
prompt that a stream waits for is due at once. Where a step has free room, early prefill waits for it as long as it
can. Where it has none, as on a CPU whose every token costs, waiting gains nothing, and deadlines are early ones.
"""

from __future__ import annotations

import math

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import Load
from sglang_ext.policy.edge_weight import EdgeWeights
from sglang_ext.policy.preemption import yield_order
from sglang_ext.policy.snapshot import Holding, Plan, Prefill, Snapshot
from sglang_ext.policy.step_plan import StepPlan
from sglang_ext.policy.step_times import StepTimes

STALLED, LATE, DUE = range(3)
"""Ranks in the order of prompts: one that a stream waits for, a run far past its TTFT, all others."""

Key = tuple[int, float, bool, int, int]
"""Sorts prompts: rank, place within it, whether others of the same deadline go before, age, place in the snapshot."""


class DeadlinePolicy:
    """Prompts that a stream waits for first, then the earliest deadline."""

    name = "deadline"
    switches = frozenset({"priority", "region", "stage2", "preemption", "edge_weight", "deadlines", "ridge"})

    def __init__(self, configuration: Configuration, times: StepTimes) -> None:
        self.configuration = configuration
        self.times = times
        self._weights = EdgeWeights(configuration, times)

    def plan(self, snapshot: Snapshot) -> Plan:
        """All decodes, then prompts by deadline up to the budget, within the feasible region."""
        step = StepPlan(snapshot, self.configuration, self.times)
        ready = step.ready(self._weights.at(snapshot, step.decodes))
        if self._scarce(snapshot):
            ready = [prefill for prefill in ready if prefill.hops <= 1]
        if not ready or step.full():
            return step.plan()
        free = self._free(step.decodes, snapshot.chunk)
        due, keys = self._dated(ready, snapshot.now_s, step.decodes, free)
        budget = self._budget(ready, due, free)
        if self.configuration.has("priority"):
            ready = self._in_order(ready, keys)
        for prefill in ready:
            if budget <= 0:
                break
            tokens = min(budget, prefill.pending - step.room.given(prefill))
            got = step.give(prefill, tokens)
            budget -= got
            if got < tokens and step.full():
                break
        return step.plan()

    def yields_first(self, holding: tuple[Holding, ...]) -> tuple[str, ...]:
        return yield_order(holding, self.configuration, self.times)

    def _scarce(self, snapshot: Snapshot) -> bool:
        """Whether so little KV is free that only the next task of each run is looked at."""
        reserve = self.configuration.reserve
        used = sum(each.tokens for each in snapshot.holding) + sum(each.context for each in snapshot.decodes)
        return snapshot.kv_free < reserve * (snapshot.kv_free + used)

    def _dated(self, ready: list[Prefill], now_s: float, decodes: Load, free: int) -> tuple[list[float], list[Key]]:
        """For each prompt the steps, at least one, within which the rest of it should be in; and its place in order.

        Work waits for room that is free in later steps. Where none is, waiting gains nothing, and it is due soon.
        """
        configuration = self.configuration
        part = 1.0 if free else configuration.hurry
        step_s = self.times.time(decodes if decodes.rows else Load(rows=1))
        assumed_s = configuration.assumed_ttft * self.times.model.decode_step()
        due: list[float] = []
        keys: list[Key] = []
        first: dict[str, float] = {}
        for index, prefill in enumerate(ready):
            if prefill.stalled:
                steps = 1.0
                key: Key = (STALLED, prefill.pending, False, prefill.order, index)
            elif prefill.complete:
                waited_s = now_s - prefill.since_s
                ttft_s = assumed_s if prefill.deadline_s is None else prefill.deadline_s - prefill.since_s
                steps = part * configuration.ttft_share * (ttft_s - waited_s) / step_s
                first[prefill.run] = steps
                late = waited_s > configuration.late * ttft_s
                key = (LATE, 0.0, False, prefill.order, index) if late else (DUE, steps, True, prefill.order, index)
            else:
                steps = part * configuration.upstream_share * prefill.rest_steps
                if not free:
                    # The first token of its run would wait for it, and it needs that token.
                    steps = max(steps, first.get(prefill.run, 0.0))
                key = (DUE, steps, True, prefill.order, index)
            due.append(steps if steps > 1.0 else 1.0)
            keys.append(key)
        return due, keys

    def _free(self, decodes: Load, chunk: int) -> int:
        """Tokens that join the decodes without making the step notably longer; all where nothing decodes."""
        if not decodes.rows:
            return chunk
        configuration = self.configuration
        if not configuration.has("ridge"):
            return 0
        free = self.times.model.ridge(decodes, configuration.ridge_share, chunk)
        return free if free >= configuration.grant_tokens else 0

    def _budget(self, ready: list[Prefill], due: list[float], free: int) -> int:
        """Tokens of this step: what is free, or what the deadlines ask for."""
        if not self.configuration.has("deadlines"):
            return free
        counted = [index for index, prefill in enumerate(ready) if not free or self._soon(prefill)]
        return max(free, _rate(ready, due, counted))

    def _soon(self, prefill: Prefill) -> bool:
        """Whether a prompt may take more than what is free: it is complete, or the next of its run and needed soon."""
        return prefill.complete or (prefill.hops <= 1 and prefill.rest_steps <= self.configuration.soon_steps)

    def _in_order(self, ready: list[Prefill], keys: list[Key]) -> list[Prefill]:
        """Stalled ones by what is left of them, late ones by age, then by deadline.

        A short complete prompt goes before the long ones, so that it never waits behind their chunks.
        """
        short = self.configuration.short
        fresh = [key for key in keys if key[0] == DUE and ready[key[4]].complete]
        first = min((key[1] for key in fresh if ready[key[4]].pending > short), default=math.inf)
        for rank, steps, _, order, index in fresh:
            if ready[index].pending <= short:
                keys[index] = (rank, min(steps, first), False, order, index)
        return [ready[key[4]] for key in sorted(keys)]


def _rate(ready: list[Prefill], due: list[float], counted: list[int]) -> int:
    """Tokens per step with which some deadlines can be kept: the work due by d, tokens to come included, over d."""
    work, rate = 0, 0.0
    for steps, index in sorted((due[index], index) for index in counted):
        work += ready[index].pending + ready[index].to_come
        if work > rate * steps:
            rate = work / steps
    return math.ceil(rate)
