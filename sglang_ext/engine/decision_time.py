"""How long the scheduler's own decisions take, beside the steps that they are about."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sglang_ext.engine.step_meter import StepMeter


class DecisionTime:
    """Counts what the extension adds to each step with something to run: taking in outputs, growing prompts, planning.

    Not in it: taking the pieces out of a batch that has run, as SGLang does with its own chunk. Read from this
    process's clock, and never decided by.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.seconds = 0.0
        self._step_s = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """The block is a part of this step's decisions."""
        began = time.perf_counter()
        yield
        self._step_s += time.perf_counter() - began

    def end_step(self, ran: bool) -> None:
        """This step's decisions are made; one that had nothing to run does not count."""
        if ran:
            self.steps += 1
            self.seconds += self._step_s
        self._step_s = 0.0

    def report(self, meter: StepMeter) -> dict[str, float]:
        """Seconds and steps so far, and the mean decision as a share of the mean measured step (0 before one was)."""
        share = 0.0
        if self.steps and meter.seconds > 0:
            share = (self.seconds / self.steps) / (meter.seconds / meter.steps)
        return {
            "steps": self.steps,
            "seconds": self.seconds,
            "measured_steps": meter.steps,
            "measured_seconds": meter.seconds,
            "share": share,
        }
