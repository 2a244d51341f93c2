"""The CPU's forwards of fused operations against SGLang's native ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sglang.srt.layers.activation import SiluAndMul
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding

from sglang_ext.engine.cpu import fused_ops

DTYPES = [torch.float32, torch.bfloat16]
ROWS = [1, 7, 100]


def norm(size: int, dtype: torch.dtype) -> Any:
    op = RMSNorm.__new__(RMSNorm)
    torch.nn.Module.__init__(op)
    op.weight = torch.nn.Parameter(torch.randn(size).to(dtype), requires_grad=False)
    op.hidden_size, op.variance_epsilon = size, 1e-5
    op.variance_size_override = op.override_orig_dtype = None
    op.fp32_residual = op.cast_x_before_out_mul = False
    return op


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("with_residual", [False, True])
def test_rms_norm(dtype: torch.dtype, rows: int, with_residual: bool) -> None:
    op, x = norm(48, dtype), torch.randn(rows, 48).to(dtype)
    residual = torch.randn(rows, 48).to(dtype) if with_residual else None
    got = fused_ops.rms_norm(op, x.clone(), residual)
    expected = op.forward_native(x.clone(), residual)
    # In bf16 the sum of the residual is rounded before it is normed, not after.
    tolerance = {"atol": 3e-2, "rtol": 2e-2} if dtype is torch.bfloat16 else {"atol": 1e-5, "rtol": 1e-5}
    for mine, theirs in zip(got if with_residual else [got], expected if with_residual else [expected], strict=True):
        torch.testing.assert_close(mine, theirs, **tolerance)


def test_new_weights_of_a_norm_are_seen() -> None:
    op, x = norm(16, torch.float32), torch.randn(2, 16)
    fused_ops.rms_norm(op, x)
    op.weight.data.mul_(2)
    fused_ops.forget_weights(op)
    torch.testing.assert_close(fused_ops.rms_norm(op, x), op.forward_native(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
def test_silu_and_mul(dtype: torch.dtype, rows: int) -> None:
    x = torch.randn(rows, 64).to(dtype)
    torch.testing.assert_close(fused_ops.silu_and_mul(None, x), SiluAndMul.forward_native(None, x))


def rotary(dtype: torch.dtype, neox: bool = True) -> Any:
    op = RotaryEmbedding.__new__(RotaryEmbedding)
    torch.nn.Module.__init__(op)
    op.head_size = op.rotary_dim = 16
    op.is_neox_style = neox
    angle = torch.arange(600.0)[:, None] * 10000.0 ** (-torch.arange(0, 16, 2) / 16)
    op.cos_sin_cache = torch.cat((angle.cos(), angle.sin()), -1).to(dtype)
    from sglang.srt.layers.rotary_embedding.utils import apply_rotary_emb

    op._apply_rotary_emb_wrapped = apply_rotary_emb
    return op


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("beside", [False, True], ids=["apart", "parts-of-one-product"])
@pytest.mark.parametrize("neox", [True, False])
def test_rotary(dtype: torch.dtype, beside: bool, neox: bool) -> None:
    op, positions = rotary(dtype, neox), torch.tensor([0, 5, 599])
    query, key, _ = torch.randn(3, 8 * 16).to(dtype).split((64, 32, 32), -1)
    if not beside:
        query, key = query.contiguous(), key.contiguous()
    for _ in range(2):
        got = fused_ops.rotate(op, positions, query, key)
        for mine, theirs in zip(got, op.forward_native(positions, query, key), strict=True):
            torch.testing.assert_close(mine, theirs, atol=2e-2 if dtype is torch.bfloat16 else 1e-5, rtol=2e-2)
        # The same tensor with other positions, as a step's buffer has.
        positions.add_(-1).clamp_(0)
