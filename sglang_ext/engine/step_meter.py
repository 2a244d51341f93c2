"""How long steps took, from the lead rank's clock, so that the expected times keep to what is measured."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from sglang_ext.policy.cost_model import Load
from sglang_ext.policy.step_times import StepTimes

# Steps that are learned from at once: what runs after a forward finds nothing in the processor's caches, so that
# the first of them costs as much as all others.
TOGETHER = 8


class StepMeter:
    """Attributes the time between two ticks of the clock to the step that ran in it.

    Args:
        times: learns from each measured step.
        lag: steps between a launch and the tick interval in which it runs: 1 where the scheduler plans a step
            while the device runs the one before, else 0.
    """

    def __init__(self, times: StepTimes, lag: int) -> None:
        self.times = times
        self._lag = lag
        self._launched: deque[Load | None] = deque(maxlen=lag + 1)
        self._last_s: float | None = None
        self._measured: list[tuple[Load, float]] = []
        self.steps = 0
        self.seconds = 0.0

    def tick(self, now_s: float | None) -> None:
        """A step begins at that time; None: it has no time, and neither has the one before."""
        load = self._launched[0] if len(self._launched) > self._lag else None
        if load is not None and now_s is not None and self._last_s is not None:
            seconds = now_s - self._last_s
            self.steps += 1
            self.seconds += seconds
            self._measured.append((load, seconds))
            if len(self._measured) == TOGETHER:
                self._learn()
        self._last_s = now_s

    def _learn(self) -> None:
        for load, seconds in self._measured:
            self.times.observe(load, seconds)
        self._measured.clear()

    def launch(self, load: Load | None) -> None:
        """The step launches this; None: nothing, and the scheduler may sleep."""
        if load is None:
            self._launched.clear()
        else:
            self._launched.append(load)


def load_of(batch: Any) -> Load | None:
    """What a batch of SGLang's does; None if there is no batch."""
    if batch is None:
        return None
    if not batch.forward_mode.is_extend():
        return _decoding(batch.reqs)
    rows = batch.decoding_reqs or ()
    decoding = set(map(id, rows))
    return _decoding(rows).with_pieces((r.prefix_len, r.extend_len) for r in batch.reqs if id(r) not in decoding)


def _decoding(rows: Sequence[Any]) -> Load:
    return Load(len(rows), kv=sum(len(req.origin_input_ids) + len(req.output_ids) for req in rows))
