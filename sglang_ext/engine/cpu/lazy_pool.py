"""The KV pool of a CPU engine: memory that the system hands out as tokens come in, not when the engine starts."""

from __future__ import annotations

import mmap
from math import prod

import torch
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
from torch import Tensor


class LazyKVPool(MHATokenToKVPool):  # type: ignore[misc]
    """SGLang's pool for plain attention, with buffers that cost nothing until they are written."""

    def _create_buffers_normal(self) -> None:
        if self.kv_cache_layout != "nhd":
            super()._create_buffers_normal()
            return
        keys, values = self._kv_buffer_shapes()
        self.k_buffer = [zeros(keys, self.store_dtype) for _ in range(self.layer_num)]
        self.v_buffer = [zeros(values, self.store_dtype) for _ in range(self.layer_num)]


def zeros(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """As torch.zeros, which writes each page once: a second for each few gigabytes, and they are taken then."""
    memory = mmap.mmap(-1, prod(shape) * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # Tokens lie anywhere in it; with small pages each gather would look up hundreds of addresses.
    memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype, count=prod(shape)).view(shape)
