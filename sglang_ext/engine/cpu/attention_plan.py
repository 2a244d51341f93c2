"""What the attention of one forward step consists of, worked out once for all layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

# Padded tokens a group of decodes may have for each real one.
MAX_PADDING = 1.25
# Query rows of a chunk per block; a block sees only the keys up to its last row.
BLOCK_ROWS = 128
# Contexts are padded to a multiple: oneDNN generates code for each new shape of a product, a millisecond each.
MULTIPLE = 64


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """Sequences with one new token each and contexts of like length, padded to the longest.

    Args:
        rows: [sequences], places of their tokens in the batch; None: all of the batch, in order.
        slots: [sequences * kv heads * longest], rows of the pool seen as [slots * kv heads, size].
        longest: tokens of the longest context, the new one included, padded.
        bias: [sequences * kv heads, 1, longest], 0, or -inf behind a context's end.
    """

    rows: Tensor | None
    slots: Tensor
    count: int
    longest: int
    bias: Tensor


@dataclass(frozen=True, slots=True)
class Chunk:
    """Several new tokens of one sequence, behind `prefix` cached ones.

    Args:
        start, end: places of its tokens in the batch.
        slots: [kv heads * context], rows of the pool seen as [slots * kv heads, size].
        context: prefix + new tokens, padded.
        mask: [BLOCK_ROWS, BLOCK_ROWS + MULTIPLE], 0 on and below the diagonal, else -inf.
    """

    start: int
    end: int
    prefix: int
    slots: Tensor
    context: int
    mask: Tensor


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    decodes: tuple[DecodeGroup, ...]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a plan needs to know of the model and the machine.

    Args:
        group_tokens: padded tokens whose keys and values a group of decodes may gather at once.
    """

    kv_heads: int
    dtype: torch.dtype
    group_tokens: int


def plan_attention(
    req_to_token: Tensor, rows: Sequence[int], prefixes: Sequence[int], lengths: Sequence[int], shape: Shape
) -> AttentionPlan:
    """Plan a step.

    Args:
        req_to_token: [requests, context], slots in the pool.
        rows: per sequence its row there.
        prefixes: per sequence the tokens that are cached already.
        lengths: per sequence its new tokens; the batch holds them one sequence after the other.
    """
    single: list[tuple[int, int, int]] = []
    chunks = []
    start = 0
    for row, prefix, length in zip(rows, prefixes, lengths, strict=True):
        if length == 1:
            single.append((prefix + 1, start, row))
        elif length:
            context = padded(prefix + length)
            slots = torch.zeros(1, context, dtype=torch.int64)
            slots[0, : prefix + length] = req_to_token[row, : prefix + length]
            chunks.append(
                Chunk(start, start + length, prefix, _by_head(slots, shape.kv_heads), context, _mask(shape.dtype))
            )
        start += length
    return AttentionPlan(tuple(_groups(req_to_token, single, start, shape)), tuple(chunks))


def _groups(req_to_token: Tensor, single: list[tuple[int, int, int]], tokens: int, shape: Shape) -> list[DecodeGroup]:
    """Group sequences, each (context, place, row), so that padding and the gathered keys stay bounded."""
    parts: list[list[tuple[int, int, int]]] = [single] if single and _fits(single, shape) else []
    if not parts:
        for entry in sorted(single, reverse=True):
            if parts and _fits([*parts[-1], entry], shape):
                parts[-1].append(entry)
            else:
                parts.append([entry])
    groups = []
    for part in parts:
        contexts = torch.tensor([context for context, _, _ in part])
        longest = padded(max(context for context, _, _ in part))
        slots = torch.zeros(len(part), longest, dtype=torch.int64)
        known = req_to_token[torch.tensor([row for _, _, row in part]), :longest]
        slots[:, : known.shape[1]] = known
        beyond = torch.arange(longest) >= contexts.unsqueeze(1)
        # What stands there is anybody's, or no slot at all.
        slots.masked_fill_(beyond, 0)
        bias = torch.zeros(beyond.shape, dtype=shape.dtype).masked_fill_(beyond, float("-inf"))
        bias = bias.repeat_interleave(shape.kv_heads, 0).unsqueeze(1)
        # A group of all tokens was never sorted: all of them fit together.
        places = None if len(part) == tokens else torch.tensor([place for _, place, _ in part])
        groups.append(DecodeGroup(places, _by_head(slots, shape.kv_heads), len(part), longest, bias))
    return groups


def _fits(part: list[tuple[int, int, int]], shape: Shape) -> bool:
    if len(part) < 2:
        return True
    gathered = len(part) * max(context for context, _, _ in part)
    real = sum(context for context, _, _ in part)
    return gathered <= min(shape.group_tokens, real * MAX_PADDING)


def _by_head(slots: Tensor, kv_heads: int) -> Tensor:
    """[sequences, tokens] slots -> [sequences * kv heads * tokens] rows of the pool, heads before tokens."""
    rows = slots.unsqueeze(1) * kv_heads + torch.arange(kv_heads).view(1, -1, 1)
    return rows.flatten()


def padded(context: int) -> int:
    """The next multiple of MULTIPLE."""
    return -(-context // MULTIPLE) * MULTIPLE


@cache
def _mask(dtype: torch.dtype) -> Tensor:
    return torch.full((BLOCK_ROWS, BLOCK_ROWS + MULTIPLE), float("-inf"), dtype=dtype).triu_(1)
