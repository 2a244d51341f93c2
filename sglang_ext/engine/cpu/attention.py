"""Attention over a paged pool on plain torch, with work in proportion to new tokens times their context.

Keys and values are gathered with heads before tokens, so that each product is one batched matrix
product over heads; the query heads of a group share their key head as rows of one matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sglang_ext.engine.cpu.attention_plan import (
    BLOCK_ROWS,
    AttentionPlan,
    Chunk,
    DecodeGroup,
    Shape,
    padded,
    plan_attention,
)

# What a group of decodes gathers at once should stay in a core's share of the cache.
GATHERED_BYTES = 6 << 20


class Scratch:
    """Buffers that are used again by each layer and step.

    New memory for each product would cost more than the product: large blocks come from the
    operating system page by page.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._buffers: dict[str, Tensor] = {}

    def __call__(self, name: str, *shape: int) -> Tensor:
        """An uninitialized tensor of that shape; valid until the next call with that name."""
        size = 1
        for length in shape:
            size *= length
        buffer = self._buffers.get(name)
        if buffer is None or buffer.numel() < size:
            # Rounded up, since contexts grow by a token at a time; touched at once.
            buffer = torch.zeros(1 << (size - 1).bit_length() if size else 1, dtype=self._dtype)
            self._buffers[name] = buffer
        return buffer[:size].view(shape)


class TorchAttention:
    """Attention of a model on plain torch, with the face of CompiledAttention.

    Args:
        group_tokens: as in Shape; by default what fits into GATHERED_BYTES.
    """

    def __init__(self, kv_heads: int, size: int, dtype: torch.dtype, group_tokens: int | None = None) -> None:
        bytes_per_token = 2 * kv_heads * size * dtype.itemsize
        self._shape = Shape(kv_heads, dtype, group_tokens or max(1, GATHERED_BYTES // bytes_per_token))
        self._scratch = Scratch(dtype)
        self._plan = AttentionPlan((), ())

    def plan(self, req_to_token: Tensor, rows: Sequence[int], prefixes: Sequence[int], lengths: Sequence[int]) -> None:
        """As `plan_attention`; `attend` computes what was planned last."""
        self._plan = plan_attention(req_to_token, rows, prefixes, lengths, self._shape)

    def attend(self, query: Tensor, output: Tensor, keys: Tensor, values: Tensor, scaling: float) -> None:
        """As the function of this name."""
        attend(self._plan, query, output, keys, values, scaling, self._scratch)


def attend(
    plan: AttentionPlan, query: Tensor, output: Tensor, keys: Tensor, values: Tensor, scaling: float, scratch: Scratch
) -> None:
    """Causal attention of a batch's new tokens, whose keys and values are in the pool already.

    Args:
        query, output: [tokens, heads, size], one dtype.
        keys, values: [slots, kv heads, size], contiguous, the query's dtype.
        scaling: factor on the scores.
    """
    heads, size = query.shape[1:]
    kv_heads = keys.shape[1]
    grouped = query.view(-1, kv_heads, heads // kv_heads, size) * scaling
    result = output.view(-1, kv_heads, heads // kv_heads, size)
    keys, values = keys.view(-1, size), values.view(-1, size)
    for group in plan.decodes:
        _decode(group, grouped, result, keys, values, scratch)
    for chunk in plan.chunks:
        _extend(chunk, grouped, result, keys, values, scratch)


def _decode(group: DecodeGroup, query: Tensor, result: Tensor, keys: Tensor, values: Tensor, scratch: Scratch) -> None:
    """query, result: [tokens, kv heads, heads of one group, size]."""
    kv_heads, shared, size = query.shape[1:]
    matrices = group.count * kv_heads
    key = _gather(keys, group.slots, scratch("key", matrices, group.longest, size))
    value = _gather(values, group.slots, scratch("value", matrices, group.longest, size))
    rows = (query if group.rows is None else query[group.rows]).view(matrices, shared, size)
    scores = scratch("scores", matrices, shared, group.longest)
    torch.bmm(rows, key.transpose(1, 2), out=scores)
    scores += group.bias
    torch.softmax(scores, -1, out=(weights := scratch("weights", *scores.shape)))
    if group.rows is None:
        torch.bmm(weights, value, out=result.view(matrices, shared, size))
    else:
        result[group.rows] = torch.bmm(weights, value).view(group.count, kv_heads, shared, size)


def _extend(chunk: Chunk, query: Tensor, result: Tensor, keys: Tensor, values: Tensor, scratch: Scratch) -> None:
    """query, result: [tokens, kv heads, heads of one group, size]."""
    kv_heads, shared, size = query.shape[1:]
    key = _gather(keys, chunk.slots, scratch("key", kv_heads, chunk.context, size))
    value = _gather(values, chunk.slots, scratch("value", kv_heads, chunk.context, size))
    for first in range(chunk.start, chunk.end, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, chunk.end)
        rows, before = last - first, chunk.prefix + first - chunk.start
        context = padded(before + rows)
        # [kv heads, heads of one group * rows, size]
        block = query[first:last].permute(1, 2, 0, 3).reshape(kv_heads, shared * rows, size)
        scores = scratch("scores", kv_heads, shared * rows, context)
        torch.bmm(block, key[:, :context].transpose(1, 2), out=scores)
        scores.view(kv_heads, shared, rows, context)[..., before:] += chunk.mask[:rows, : context - before]
        torch.softmax(scores, -1, out=(weights := scratch("weights", *scores.shape)))
        mixed = torch.bmm(weights, value[:, :context])
        result[first:last] = mixed.view(kv_heads, shared, rows, size).permute(2, 0, 1, 3)


def _gather(pool: Tensor, rows: Tensor, into: Tensor) -> Tensor:
    torch.index_select(pool, 0, rows, out=into.view(-1, pool.shape[1]))
    return into
