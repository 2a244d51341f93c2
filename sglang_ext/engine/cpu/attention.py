"""Attention on plain torch: SGLang's `torch_native` backend with work in proportion to the new tokens.

SGLang's own extend pads the queries to the whole sequence, so that 8 tokens behind 500 cached ones
cost as much as 508, and its decode runs one call per sequence.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def create_attention_backend(runner: Any) -> GrapeAttentionBackend:
    return GrapeAttentionBackend(runner)


class GrapeAttentionBackend(TorchNativeAttnBackend):  # type: ignore[misc]
    """`torch_native` with its two attention functions replaced for plain causal self-attention.

    Cross-attention and sliding windows go to SGLang's own functions.
    """

    def _run_sdpa_forward_extend(
        self,
        query: Tensor,
        output: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        req_to_token: Tensor,
        req_pool_indices: Tensor,
        seq_lens: Tensor,
        extend_prefix_lens: Tensor,
        extend_seq_lens: Tensor,
        encoder_lens: Tensor | None = None,
        scaling: float | None = None,
        enable_gqa: bool = False,
        causal: bool = False,
        is_cross_attn: bool = False,
        sliding_window_size: int | None = None,
    ) -> Tensor:
        if encoder_lens is not None or is_cross_attn or not causal or sliding_window_size is not None:
            return super()._run_sdpa_forward_extend(  # type: ignore[no-any-return]
                query,
                output,
                k_cache,
                v_cache,
                req_to_token,
                req_pool_indices,
                seq_lens,
                extend_prefix_lens,
                extend_seq_lens,
                encoder_lens,
                scaling=scaling,
                enable_gqa=enable_gqa,
                causal=causal,
                is_cross_attn=is_cross_attn,
                sliding_window_size=sliding_window_size,
            )
        start = 0
        rows = zip(req_pool_indices.tolist(), extend_prefix_lens.tolist(), extend_seq_lens.tolist(), strict=True)
        for row, prefix, length in rows:
            slots = req_to_token[row, : prefix + length]
            output[start : start + length] = extend_attention(
                query[start : start + length], k_cache[slots], v_cache[slots], prefix, scaling
            )
            start += length
        return output

    def _run_sdpa_forward_decode(
        self,
        query: Tensor,
        output: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        req_to_token: Tensor,
        req_pool_indices: Tensor,
        seq_lens: Tensor,
        encoder_lens: Tensor | None = None,
        scaling: float | None = None,
        enable_gqa: bool = False,
        causal: bool = False,
        is_cross_attn: bool = False,
        sliding_window_size: int | None = None,
    ) -> Tensor:
        if encoder_lens is not None or is_cross_attn or sliding_window_size is not None:
            return super()._run_sdpa_forward_decode(  # type: ignore[no-any-return]
                query,
                output,
                k_cache,
                v_cache,
                req_to_token,
                req_pool_indices,
                seq_lens,
                encoder_lens,
                scaling=scaling,
                enable_gqa=enable_gqa,
                causal=causal,
                is_cross_attn=is_cross_attn,
                sliding_window_size=sliding_window_size,
            )
        slots = req_to_token[req_pool_indices, : int(seq_lens.max())]
        output.copy_(decode_attention(query, k_cache[slots], v_cache[slots], seq_lens, scaling))
        return output


def extend_attention(query: Tensor, key: Tensor, value: Tensor, prefix: int, scaling: float | None) -> Tensor:
    """Causal attention of new tokens behind `prefix` cached ones, for one sequence.

    Args:
        query: [new, heads, size]; token i stands at position prefix + i.
        key, value: [prefix + new, kv heads, size], any dtype; taken in the query's.
        scaling: factor on the scores; None means size ** -0.5.

    Returns:
        [new, heads, size]
    """
    new = query.shape[0]
    mask = None
    if prefix and new > 1:
        positions = torch.arange(prefix + new)
        mask = positions <= positions[prefix:].unsqueeze(1)
    result = scaled_dot_product_attention(
        query.transpose(0, 1).unsqueeze(0),
        key.to(query.dtype).transpose(0, 1).unsqueeze(0),
        value.to(query.dtype).transpose(0, 1).unsqueeze(0),
        attn_mask=mask,
        is_causal=prefix == 0 and new > 1,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return result.squeeze(0).transpose(0, 1)


def decode_attention(query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, scaling: float | None) -> Tensor:
    """Attention of one new token per sequence, all sequences in one padded call.

    Args:
        query: [sequences, heads, size]
        key, value: [sequences, longest, kv heads, size]; what stands behind a sequence's length is ignored.
        lengths: [sequences], cached tokens, the new one included.

    Returns:
        [sequences, heads, size]
    """
    mask = torch.arange(key.shape[1]) < lengths.unsqueeze(1)
    result = scaled_dot_product_attention(
        query.unsqueeze(2),
        key.to(query.dtype).transpose(1, 2),
        value.to(query.dtype).transpose(1, 2),
        attn_mask=mask[:, None, None, :],
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[2],
    )
    return result.squeeze(2)
