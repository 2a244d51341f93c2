"""How long steps took, from the lead rank's clock, so that the expected times keep to what is measured."""

from __future__ import annotations

from collections import deque
from typing import Any

from sglang_ext.policy.cost_model import Load
from sglang_ext.policy.snapshot import Decode
from sglang_ext.policy.step_times import StepTimes


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
        self.steps = 0
        self.seconds = 0.0

    def tick(self, now_s: float | None) -> None:
        """A step begins at that time; None: it has no time, and neither has the one before."""
        load = self._launched[0] if len(self._launched) > self._lag else None
        if load is not None and now_s is not None and self._last_s is not None:
            seconds = now_s - self._last_s
            self.steps += 1
            self.seconds += seconds
            self.times.observe(load, seconds)
        self._last_s = now_s

    def launch(self, load: Load | None) -> None:
        """The step launches this; None: nothing, and the scheduler may sleep."""
        if load is None:
            self._launched.clear()
        else:
            self._launched.append(load)


def load_of(batch: Any, decodes: tuple[Decode, ...]) -> Load | None:
    """What a batch of SGLang's does; None if there is no batch.

    Args:
        decodes: the rows that would decode in this step.
    """
    if batch is None:
        return None
    if not batch.forward_mode.is_extend():
        return Load.of(decodes)
    decoding = {req.rid for req in batch.decoding_reqs or ()}
    pieces = ((req.prefix_len, req.extend_len) for req in batch.reqs if req.rid not in decoding)
    return Load.of((decode for decode in decodes if decode.rid in decoding), pieces)
