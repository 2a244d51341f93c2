"""Attention over the paged pool by compiled code, which reads keys and values where they are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor
from torch.autograd.profiler import record_function

from sglang_ext.engine.cpu.native.library import NativeLibrary

SIZES = range(16, 257, 16)
DTYPES = (torch.bfloat16, torch.float32)
OPERATION = "grape::attention"
_NOTHING = nullcontext()
_profiler_enabled: Callable[[], bool] = torch._C._autograd._profiler_enabled
_NAMES = "count heads kv_heads size bf16 threads sequences scratch parallel thread team"


class _Step(ctypes.Structure):
    """`Step` of the C code; all of its fields have the size of an address."""

    _fields_ = tuple((name, ctypes.c_int64) for name in _NAMES.split())


class CompiledAttention:
    """Attention of a model whose layers all have these shapes.

    Args:
        heads: of queries, a multiple of `kv_heads`.
        size: of a head, one of SIZES.
        dtype: of queries, keys, values and output, one of DTYPES.
    """

    def __init__(self, library: NativeLibrary, heads: int, kv_heads: int, size: int, dtype: torch.dtype) -> None:
        self._library = library
        self._step = _Step(
            heads=heads,
            kv_heads=kv_heads,
            size=size,
            bf16=dtype is torch.bfloat16,
            parallel=library.parallel,
            thread=library.thread,
            team=library.team,
        )
        self._address = ctypes.addressof(self._step)
        self._scratch = torch.empty(0, dtype=torch.uint8)

    def plan(self, req_to_token: Tensor, rows: Sequence[int], prefixes: Sequence[int], lengths: Sequence[int]) -> None:
        """As `plan_attention`, of a table of int32; each call of `attend` reads it again."""
        if req_to_token.dtype is not torch.int32 or req_to_token.stride(1) != 1:
            raise ValueError(f"the table of slots is {req_to_token.dtype} {req_to_token.stride()}, not rows of int32")
        table, width = req_to_token.data_ptr(), req_to_token.stride(0) * req_to_token.itemsize
        numbers: list[int] = []
        start = 0
        for row, prefix, length in zip(rows, prefixes, lengths, strict=True):
            numbers += (start, length, prefix, table + row * width)
            start += length
        self._table, self._sequences = req_to_token, (ctypes.c_int64 * len(numbers))(*numbers)
        threads = torch.get_num_threads()
        if len(self._scratch) < threads * self._library.scratch_bytes:
            self._scratch = torch.empty(threads * self._library.scratch_bytes, dtype=torch.uint8)
        step = self._step
        step.count, step.sequences = len(rows), ctypes.addressof(self._sequences)
        step.threads, step.scratch = threads, self._scratch.data_ptr()

    def attend(self, query: Tensor, output: Tensor, keys: Tensor, values: Tensor, scaling: float) -> None:
        """Attention of the planned step's new tokens, whose keys and values are in the pool already.

        Args:
            query: [tokens, heads, size], contiguous within a token.
            output: [tokens, heads, size], contiguous.
            keys, values: [slots, kv heads, size], contiguous.
            scaling: factor on the scores.
        """
        # To torch's profiler the call is no operation of its own accord.
        with record_function(OPERATION) if _profiler_enabled() else _NOTHING:
            self._library.attend(
                self._address,
                query.data_ptr(),
                query.stride(0) * query.itemsize,
                output.data_ptr(),
                keys.data_ptr(),
                values.data_ptr(),
                scaling,
            )


def can_compute(shapes: set[tuple[int, int, int]], dtype: torch.dtype) -> bool:
    """Args: shapes: (heads, kv heads, size) of a model's layers."""
    if len(shapes) != 1 or dtype not in DTYPES:
        return False
    heads, kv_heads, size = next(iter(shapes))
    return size in SIZES and heads % kv_heads == 0
