"""Profiles decode steps by operation, from within a scheduler's loop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from sglang_ext.bench.step_profile import OperationTime, RawProfile

# Decode steps of a size before the first that counts, and then steps without the profiler and with it.
WARM, PLAIN, PROFILED = 12, 8, 6


class StepProfiler:
    """Told of each step at its launch; profiles each size of decode batch once.

    Args:
        sizes: of decode batches.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._left = list(sizes)
        self._batch = 0
        self._launches: list[float] = []
        self._profile: Any = None

    def step(self, launch: float, decodes: int) -> RawProfile | None:
        """A step is launched.

        Args:
            launch: its time, in seconds.
            decodes: sequences that decode, 0 if anything else is in the step.

        Returns:
            the profile that this launch ends.
        """
        if decodes != self._batch:
            self._stop()
            self._batch, self._launches = decodes, []
        if decodes not in self._left:
            return None
        self._launches.append(launch)
        begun = len(self._launches) - 1 - WARM - PLAIN
        if begun == 0:
            self._start()
        if begun < PROFILED:
            return None
        self._left.remove(decodes)
        return self._finished(launch)

    def _start(self) -> None:
        import torch

        self._profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True)
        self._profile.start()
        # The start itself takes a while; it is no part of the first step.
        self._launches[-1] = time.monotonic()

    def _stop(self) -> None:
        if self._profile is not None:
            self._profile.stop()
        self._profile = None

    def _finished(self, end: float) -> RawProfile:
        profile, launches = self._profile, self._launches
        self._stop()
        first = WARM + PLAIN
        plain = [
            after - before for before, after in zip(launches[WARM:first], launches[WARM + 1 : first], strict=False)
        ]
        return RawProfile(
            batch=self._batch,
            plain_s=median(plain),
            step_s=(end - launches[first]) / PROFILED,
            operations=[
                OperationTime(
                    name=event.key,
                    shapes=[list(shape) for shape in event.input_shapes],
                    calls=event.count / PROFILED,
                    seconds=event.self_cpu_time_total * 1e-6 / PROFILED,
                )
                for event in profile.key_averages(group_by_input_shape=True)
            ],
        )
