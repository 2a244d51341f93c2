"""SGLang's attention backend `grape_cpu`: plain causal self-attention over the paged pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention
from torch import Tensor

from sglang_ext.engine.cpu.attention import TorchAttention
from sglang_ext.engine.cpu.compiled_attention import CompiledAttention, can_compute
from sglang_ext.engine.cpu.lazy_pool import LazyKVPool
from sglang_ext.engine.cpu.native.library import native_library

NAME = "grape_cpu"


class UnsupportedAttention(ValueError):
    """The model, or a setting of its cache, needs what this backend does not have."""


class GrapeAttentionBackend(AttentionBackend):  # type: ignore[misc]
    """Attention of the CPU platform.

    Args:
        runner: SGLang's ModelRunner, its model and pools made.

    Raises:
        UnsupportedAttention: the model has a variant that is not plain causal self-attention.
    """

    def __init__(self, runner: Any) -> None:
        super().__init__()
        layers = [layer for layer in runner.model.modules() if isinstance(layer, RadixAttention)]
        refuse_variants(layers, runner.token_to_kv_pool, runner.dtype)
        self.req_to_token_pool = runner.req_to_token_pool
        self.pool = runner.token_to_kv_pool
        self.attention = choose(layers, runner.dtype)

    def init_forward_metadata(self, forward_batch: Any) -> None:
        rows = forward_batch.req_pool_indices.tolist()
        if forward_batch.forward_mode.is_extend():
            prefixes = forward_batch.extend_prefix_lens.tolist()
            lengths = forward_batch.extend_seq_lens.tolist()
        else:
            prefixes = (forward_batch.seq_lens - 1).tolist()
            lengths = [1] * len(rows)
        self.attention.plan(self.req_to_token_pool.req_to_token, rows, prefixes, lengths)

    def forward_extend(
        self, q: Tensor, k: Tensor, v: Tensor, layer: Any, forward_batch: Any, save_kv_cache: bool = True, **_: Any
    ) -> Tensor:
        heads, kv_heads, size = layer.tp_q_head_num, layer.tp_k_head_num, layer.qk_head_dim
        if not save_kv_cache or k is None:
            raise UnsupportedAttention(f"{NAME!r}: layer {layer.layer_id} wants attention without writing its KV")
        query, key, value = q.view(-1, heads, size), k.view(-1, kv_heads, size), v.view(-1, kv_heads, size)
        return self.run(query, key, value, layer, forward_batch).view(-1, heads * size)

    forward_decode = forward_extend

    def run(self, query: Tensor, key: Tensor, value: Tensor, layer: Any, forward_batch: Any) -> Tensor:
        """Write the step's keys and values into the pool, then attend.

        Args:
            query: [tokens, heads, size]
            key, value: [tokens, kv heads, size]

        Returns:
            [tokens, heads, size]
        """
        keys = self.pool.get_key_buffer(layer.layer_id)
        values = self.pool.get_value_buffer(layer.layer_id)
        # As the pool's own writer, without its checks of devices and streams.
        keys.index_copy_(0, forward_batch.out_cache_loc, key)
        values.index_copy_(0, forward_batch.out_cache_loc, value)
        output = query.new_empty(query.shape)
        self.attention.attend(query, output, keys, values, layer.scaling)
        return output

    def support_triton(self) -> bool:
        return False


def choose(layers: list[Any], dtype: torch.dtype) -> CompiledAttention | TorchAttention:
    """The compiled attention where it can be had and computes these layers, else torch's."""
    shapes = {(layer.tp_q_head_num, layer.tp_k_head_num, layer.qk_head_dim) for layer in layers}
    library = native_library()
    if library is not None and can_compute(shapes, dtype):
        return CompiledAttention(library, *shapes.pop(), dtype)
    return TorchAttention(layers[0].tp_k_head_num, layers[0].qk_head_dim, dtype)


def refuse_variants(layers: list[Any], pool: Any, dtype: torch.dtype) -> None:
    """Raise UnsupportedAttention for what is not plain causal self-attention, naming it."""
    reasons: dict[str, Callable[[Any], bool]] = {
        "sliding-window attention": lambda layer: layer.sliding_window_size > -1,
        "cross-attention": lambda layer: layer.is_cross_attention,
        "bidirectional or encoder attention": lambda layer: layer.attn_type != AttentionType.DECODER,
        "a cap on the attention scores": lambda layer: bool(layer.logit_cap),
        "values of another size than keys": lambda layer: layer.qk_head_dim != layer.v_head_dim,
        "attention temperature": lambda layer: layer.xai_temperature_len > 0,
    }
    found = [name for name, has in reasons.items() if any(has(layer) for layer in layers)]
    if not layers:
        found.append("no attention that it knows")
    if type(pool) is not LazyKVPool:
        found.append(f"a KV cache of the kind {type(pool).__name__}")
    elif pool.store_dtype != dtype:
        found.append(f"a KV cache of {pool.dtype} beside activations of {dtype}")
    if found:
        raise UnsupportedAttention(
            f"the attention backend {NAME!r} does not support this model: it has {', '.join(found)}. "
            "Start with `--attention-backend torch_native`, which is slower, or use another model."
        )
