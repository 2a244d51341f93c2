"""The policy `stock`: SGLang's own order, for comparison."""

from __future__ import annotations

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.preemption import yield_order
from sglang_ext.policy.snapshot import Holding, Snapshot
from sglang_ext.policy.step_times import StepTimes


class StockPolicy:
    """Plans nothing: SGLang forms the step from its own queue."""

    name = "stock"
    switches: frozenset[str] = frozenset()

    def __init__(self, configuration: Configuration, times: StepTimes) -> None:
        self.configuration = configuration
        self.times = times

    def plan(self, snapshot: Snapshot) -> None:
        """None: the step is SGLang's."""
        return

    def yields_first(self, holding: tuple[Holding, ...]) -> tuple[str, ...]:
        return yield_order(holding, self.configuration, self.times)
