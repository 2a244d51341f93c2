"""What this machine's memory and multipliers give at best: the two limits of a forward pass."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from pydantic import BaseModel, ConfigDict

# Far beyond any cache.
_BYTES = 256 << 20
_SIDE = 2048
_TURNS = 3


class MachineLimits(BaseModel):
    """Args:
    bytes_per_s: read by all threads together.
    flops: floating-point operations per second in a large matrix product, a multiplication and an addition each one.
    """

    model_config = ConfigDict(frozen=True)

    bytes_per_s: float
    flops: float


class LimitProbe:
    """Measures the limits again and again with the same buffers.

    Args:
        dtype: of the product, as torch names it.
    """

    def __init__(self, dtype: str) -> None:
        self._source = torch.ones(_BYTES // 4)
        self._target = torch.zeros(_BYTES // 4)
        kind = getattr(torch, dtype)
        self._left, self._right = torch.randn(_SIDE, _SIDE).to(kind), torch.randn(_SIDE, _SIDE).to(kind)
        self._product = torch.empty(_SIDE, _SIDE, dtype=kind)

    def measure(self) -> MachineLimits:
        """The best of a few turns each."""
        # A copy moves each byte twice; where writes are dearer than reads, a sum shows more of the reads.
        copied = 2 * _BYTES / _shortest(lambda: self._target.copy_(self._source))
        summed = _BYTES / _shortest(self._source.sum)
        multiplied = 2 * _SIDE**3 / _shortest(lambda: torch.mm(self._left, self._right, out=self._product))
        return MachineLimits(bytes_per_s=max(copied, summed), flops=multiplied)


def _shortest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_TURNS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)
