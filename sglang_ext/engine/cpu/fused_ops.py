"""Forwards of SGLang's fused operations for the CPU: fewer passes over memory and fewer calls than its native ones."""

from __future__ import annotations

from typing import Any

import torch
from sglang.kernels.fused_op import BaseFusedOp
from sglang.srt.layers.activation import SiluAndMul
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import layer_norm, silu

# Rows up to which the detour over layer_norm is cheaper: it moves twice the data in far fewer calls.
FEW_ROWS = 32
DOUBLED = "_doubled_weight"


def register(key: str) -> None:
    """Register the forwards for the platform whose dispatch key this is."""
    for operation, forward in ((RMSNorm, rms_norm), (SiluAndMul, silu_and_mul), (RotaryEmbedding, rotate)):
        BaseFusedOp.register_oot_forward(operation, forward, key)


def rms_norm(
    op: Any,
    x: Tensor,
    residual: Tensor | None = None,
    post_residual_addition: Tensor | None = None,
    quant_linear: Any = None,
) -> Any:
    """RMSNorm with an optional residual, which is added first; returns (normed, sum) then.

    Computed in float32 and rounded once, as SGLang's native forward does.
    """
    plain = op.variance_size_override is None and not op.fp32_residual and op.override_orig_dtype is None
    if not plain or op.cast_x_before_out_mul or post_residual_addition is not None or quant_linear is not None:
        return op.forward_native(x, residual, post_residual_addition, quant_linear)
    if residual is not None:
        x = residual = x + residual
    normed = normalize(x, op)
    return normed if residual is None else (normed, residual)


def normalize(x: Tensor, op: Any) -> Tensor:
    """x / rms(x) * weight over the last dimension.

    The layer norm of (x, -x) has mean 0 and variance mean(x^2), so that its first half is the RMS norm.
    """
    size = x.shape[-1]
    if x.numel() > FEW_ROWS * size:
        return torch.rms_norm(x, (size,), op.weight, op.variance_epsilon)
    doubled = op.__dict__.get(DOUBLED)
    if doubled is None:
        doubled = op.__dict__[DOUBLED] = torch.cat((op.weight.data, op.weight.data))
    both = layer_norm(torch.cat((x, -x), -1), (2 * size,), doubled, None, op.variance_epsilon)
    return both[..., :size]


def forget_weights(model: Module) -> None:
    """Drop what was derived from weights that have been replaced."""
    for module in model.modules():
        module.__dict__.pop(DOUBLED, None)


def silu_and_mul(op: Any, x: Tensor) -> Tensor:
    """x: [..., 2 * d], gate and up side by side -> [..., d]."""
    gate, up = x.chunk(2, -1)
    return silu(gate).mul_(up)


def rotate(
    op: Any, positions: Tensor, query: Tensor, key: Tensor, offsets: Any = None, fused_set_kv_buffer_arg: Any = None
) -> Any:
    """Rotary embedding of the kind where the two halves of a head are rotated against each other.

    Args:
        positions: [tokens]
        query, key: [tokens, heads * size]
    """
    whole = op.rotary_dim == op.head_size and op.is_neox_style
    if not whole or offsets is not None or type(op) is not RotaryEmbedding or positions.dim() != 1:
        return op.forward_native(positions, query, key, offsets, fused_set_kv_buffer_arg)
    turn, size = angles(op, positions), op.head_size
    tokens, width = query.shape
    if key.data_ptr() == query.data_ptr() + width * query.itemsize and query.stride() == key.stride():
        # Both are parts of one product: turn them in one go.
        both = query.as_strided((tokens, width + key.shape[1]), query.stride())
        turned = rotate_heads(both.view(tokens, -1, size), *turn).flatten(1)
        return turned[:, :width], turned[:, width:]
    return tuple(rotate_heads(part.view(tokens, -1, size), *turn).flatten(1) for part in (query, key))


def rotate_heads(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x: [tokens, heads, size]; cos, sin: [tokens, 1, size], the first half of sin negated."""
    return torch.roll(x, x.shape[-1] // 2, -1).mul_(sin).addcmul_(x, cos)


def angles(op: Any, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of a step's positions, as `rotate_heads` takes them; the layers of a step share them."""
    known = op.__dict__.get("_step_angles")
    if known is not None and known[0] is positions and known[1] == positions._version:
        return known[2], known[3]
    cos, sin = op.cos_sin_cache.index_select(0, positions).unsqueeze(1).chunk(2, -1)
    cos, sin = torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
    op.__dict__["_step_angles"] = (positions, positions._version, cos, sin)
    return cos, sin
