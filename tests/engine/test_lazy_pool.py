"""The KV pool's memory is taken as it is written, and reads as zeros before."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sglang.srt.platforms import current_platform

from sglang_ext.engine.cpu.lazy_pool import LazyKVPool, zeros


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_zeros(dtype: torch.dtype) -> None:
    before = resident()
    made = zeros((1 << 20, 4, 64), dtype)
    assert (made.shape, made.dtype, made.is_contiguous()) == ((1 << 20, 4, 64), dtype, True)
    assert resident() - before < made.nbytes // 100
    assert not made[12345].any()
    made[12345] = 7
    assert (made[12345] == 7).all() and not made[12344].any()
    assert resident() - before < made.nbytes // 20


def test_the_pool() -> None:
    assert current_platform.get_kv_pool_cls(kind="mha") is LazyKVPool
    assert current_platform.get_kv_pool_cls(kind="mla") is None
    before = resident()
    pool = LazyKVPool(
        1 << 16,
        page_size=16,
        dtype=torch.bfloat16,
        head_num=2,
        head_dim=64,
        v_head_dim=32,
        layer_num=8,
        device="cpu",
        enable_memory_saver=False,
    )
    assert pool.get_key_buffer(3).shape == ((1 << 16) + 16, 2, 64)
    assert pool.get_value_buffer(7).shape == ((1 << 16) + 16, 2, 32)
    assert pool.get_key_buffer(0).data_ptr() != pool.get_key_buffer(1).data_ptr()
    assert resident() - before < 30 << 20 < sum(buffer.nbytes for buffer in pool.k_buffer)
