"""The two attention functions against a plain reference."""

from __future__ import annotations

import pytest
import torch

from sglang_ext.engine.cpu.attention import decode_attention, extend_attention


def reference(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, prefix: int, scale: float) -> torch.Tensor:
    """Causal attention written out in float64; shapes as in `extend_attention`."""
    heads, kv_heads = query.shape[1], key.shape[1]
    key = key.double().repeat_interleave(heads // kv_heads, 1)
    value = value.double().repeat_interleave(heads // kv_heads, 1)
    scores = torch.einsum("qhd,khd->hqk", query.double(), key) * scale
    ahead = torch.arange(key.shape[0]) > torch.arange(query.shape[0])[:, None] + prefix
    scores.masked_fill_(ahead, float("-inf"))
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("prefix", "new"), [(0, 1), (0, 37), (1, 1), (5, 8), (500, 16), (31, 200)])
@pytest.mark.parametrize(("heads", "kv_heads"), [(9, 3), (4, 4)])
def test_extend(dtype: torch.dtype, prefix: int, new: int, heads: int, kv_heads: int) -> None:
    generator = torch.Generator().manual_seed(prefix + new)
    query = torch.randn(new, heads, 16, generator=generator).to(dtype)
    key, value = torch.randn(2, prefix + new, kv_heads, 16, generator=generator).to(dtype)
    got = extend_attention(query, key, value, prefix, 0.25)
    tolerance = 1e-5 if dtype is torch.float32 else 3e-2
    torch.testing.assert_close(got.double(), reference(query, key, value, prefix, 0.25), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("lengths", [[1], [7, 1, 300], [64, 64]])
def test_decode_ignores_what_stands_behind_a_sequence(lengths: list[int]) -> None:
    generator = torch.Generator().manual_seed(len(lengths))
    batch, longest = len(lengths), max(lengths)
    query = torch.randn(batch, 6, 16, generator=generator)
    key, value = torch.randn(2, batch, longest, 2, 16, generator=generator)
    got = decode_attention(query, key, value, torch.tensor(lengths), None)
    for i, length in enumerate(lengths):
        expected = reference(query[i : i + 1], key[i, :length], value[i, :length], length - 1, 16**-0.5)
        torch.testing.assert_close(got[i : i + 1].double(), expected, atol=1e-5, rtol=1e-5)
