"""The attention of the CPU platform against a plain reference, over ragged and mixed batches on a paged pool."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from sglang_ext.engine.cpu.attention import Scratch, attend
from sglang_ext.engine.cpu.attention_plan import Shape, padded, plan_attention

SIZE = 16
POOL = 1 << 15
# Of scores and weights that are rounded to 8 bits of mantissa on the way.
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 4e-2}
Sequences = list[tuple[int, int]]


def reference(query: Tensor, key: Tensor, value: Tensor, prefix: int, scale: float) -> Tensor:
    """Causal attention of one sequence, written out in float64.

    query: [new, heads, size]; key, value: [prefix + new, kv heads, size].
    """
    groups = query.shape[1] // key.shape[1]
    key, value = (x.double().repeat_interleave(groups, 1) for x in (key, value))
    scores = torch.einsum("qhd,khd->hqk", query.double(), key) * scale
    ahead = torch.arange(len(key)) > torch.arange(len(query))[:, None] + prefix
    return torch.einsum("hqk,khd->qhd", scores.masked_fill_(ahead, float("-inf")).softmax(-1), value)


def check(
    sequences: Sequences, dtype: torch.dtype, heads: tuple[int, int] = (9, 3), page: int = 1, group: int = 8192
) -> None:
    """Compare a batch of (prefix, new tokens) on a pool whose pages are dealt out at random."""
    generator = torch.Generator().manual_seed(len(sequences))
    new = sum(length for _, length in sequences)
    query = torch.randn(new, heads[0], SIZE, generator=generator).to(dtype)
    keys, values = (torch.randn(POOL, heads[1], SIZE, generator=generator).to(dtype) for _ in range(2))
    pages = torch.randperm(POOL // page - 1, generator=generator) + 1
    table = torch.full((len(sequences) + 1, max(p + n for p, n in sequences)), POOL - 1, dtype=torch.int32)
    taken = 0
    for row, (prefix, length) in enumerate(sequences, 1):
        count = -(-(prefix + length) // page)
        slots = pages[taken : taken + count, None] * page + torch.arange(page)
        table[row, : prefix + length] = slots.flatten()[: prefix + length]
        taken += count
    prefixes, lengths = (list(column) for column in zip(*sequences, strict=True))
    plan = plan_attention(table, range(1, len(sequences) + 1), prefixes, lengths, Shape(heads[1], dtype, group))
    output = torch.full_like(query, float("nan"))
    attend(plan, query, output, keys, values, 0.25, Scratch(dtype))
    start = 0
    for row, (prefix, length) in enumerate(sequences, 1):
        slots = table[row, : prefix + length].long()
        part = slice(start, start + length)
        expected = reference(query[part], keys[slots], values[slots], prefix, 0.25)
        torch.testing.assert_close(output[part].double(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
        start += length


@settings(deadline=None, max_examples=60)
@given(
    sequences=st.lists(
        st.tuples(st.integers(0, 700), st.one_of(st.just(1), st.integers(1, 150))), min_size=1, max_size=16
    ),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    heads=st.sampled_from([(9, 3), (4, 4), (8, 1)]),
    page=st.sampled_from([1, 16]),
    group=st.sampled_from([1, 500, 8192]),
)
@example([(0, 1)], torch.float32, (9, 3), 1, 8192)
@example([(511, 1)] * 16, torch.bfloat16, (9, 3), 16, 8192)
@example([(5, 1), (300, 17), (699, 1), (0, 150)], torch.float32, (9, 3), 1, 8192)
def test_any_batch(sequences: Sequences, dtype: torch.dtype, heads: tuple[int, int], page: int, group: int) -> None:
    check(sequences, dtype, heads, page, group)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sequences", [[(4095, 1)], [(4000, 96)], [(0, 1024)], [(2048, 1), (4095, 1), (3, 1)]])
def test_long_contexts(sequences: Sequences, dtype: torch.dtype) -> None:
    check(sequences, dtype)


def test_contexts_of_unlike_length_are_not_padded_to_one_another() -> None:
    table = torch.zeros(4, 4096, dtype=torch.int32)
    plan = plan_attention(table, [0, 1, 2, 3], [4095, 40, 50, 4000], [1, 1, 1, 1], Shape(1, torch.float32, 1 << 20))
    assert sorted(group.longest for group in plan.decodes) == [padded(51), padded(4096)]
    assert sorted(group.rows.tolist() for group in plan.decodes if group.rows is not None) == [[0, 3], [2, 1]]


def test_work_is_in_proportion_to_new_tokens_and_context() -> None:
    """A chunk gathers its own context, once, and no query row but its own."""
    plan = plan_attention(torch.zeros(1, 512, dtype=torch.int32), [0], [500], [8], Shape(3, torch.float32, 8192))
    (chunk,) = plan.chunks
    assert len(chunk.slots) == 3 * padded(508)
    assert (chunk.start, chunk.end) == (0, 8)
    assert not plan.decodes
