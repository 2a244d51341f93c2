"""What a device's memory and multipliers give at best: the two limits of a forward pass."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from pydantic import BaseModel, ConfigDict

# Far beyond any cache.
_BYTES = 256 << 20
# A processor reaches its best with a small product, an accelerator only with one that fills all of it.
_SIDE, _ACCELERATOR_SIDE = 2048, 8192
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
        device: as torch names it.
    """

    def __init__(self, dtype: str, device: str = "cpu") -> None:
        self._source = torch.ones(_BYTES // 4, device=device)
        self._target = torch.zeros(_BYTES // 4, device=device)
        self._side = _SIDE if device == "cpu" else _ACCELERATOR_SIDE
        shape, kind = (self._side, self._side), getattr(torch, dtype)
        self._left, self._right = (torch.randn(shape, device=device).to(kind) for _ in range(2))
        self._product = torch.empty(shape, dtype=kind, device=device)
        self._wait = torch.get_device_module(device).synchronize

    def measure(self) -> MachineLimits:
        """The best of a few turns each."""
        # A copy moves each byte twice; where writes are dearer than reads, a sum shows more of the reads.
        copied = 2 * _BYTES / self._shortest(lambda: self._target.copy_(self._source))
        summed = _BYTES / self._shortest(self._source.sum)
        multiplied = 2 * self._side**3 / self._shortest(lambda: torch.mm(self._left, self._right, out=self._product))
        return MachineLimits(bytes_per_s=max(copied, summed), flops=multiplied)

    def _shortest(self, work: Callable[[], object]) -> float:
        times = []
        for _ in range(_TURNS):
            self._wait()
            begin = time.perf_counter()
            work()
            self._wait()
            times.append(time.perf_counter() - begin)
        return min(times)
