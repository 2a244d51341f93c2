"""The layers of Llama, Qwen2 and Qwen3 as one loop over their weights.

SGLang's own modules pass through boundaries that choose between devices, reductions and fusions;
on a small model's decode step that choice costs as much as the products. What the loop does not
cover runs SGLang's modules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from sglang.srt.model_executor.forward_context import get_attn_backend
from sglang.srt.models.llama import LlamaModel
from sglang.srt.models.qwen2 import Qwen2Model
from sglang.srt.models.qwen3 import Qwen3Model
from sglang.srt.runtime_context import get_parallel, get_server_args
from torch import Tensor, nn

from sglang_ext.engine.cpu.attention_backend import GrapeAttentionBackend
from sglang_ext.engine.cpu.fused_ops import angles, normalize, rotate_heads, silu_and_mul
from sglang_ext.engine.cpu.packed_linear import is_plain, packed_linear

STACKABLE = (LlamaModel, Qwen2Model, Qwen3Model)


@dataclass(frozen=True, slots=True)
class _Layer:
    before_attention: Any
    qkv: Any
    head_norms: tuple[Any, Any] | None
    attention: Any
    out: Any
    before_mlp: Any
    gate_up: Any
    down: Any


class DenseStack:
    """Stands in for the forward of a model's inner module.

    Args:
        inner: SGLang's LlamaModel, Qwen2Model or Qwen3Model.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._whole = inner.forward
        self._layers = [_layer(layer) for layer in inner.layers]
        self._rotary = inner.layers[0].self_attn.rotary_emb

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        forward_batch: Any,
        input_embeds: Tensor | None = None,
        pp_proxy_tensors: Any = None,
    ) -> Any:
        """As the inner module's; returns the normed hidden states, [tokens, hidden]."""
        backend = get_attn_backend()
        usual = isinstance(backend, GrapeAttentionBackend) and positions.dim() == 1 and len(input_ids)
        if not usual or self._inner.layers_to_capture or forward_batch.forward_mode.is_idle():
            return self._whole(input_ids, positions, forward_batch, input_embeds, pp_proxy_tensors)
        hidden = self._inner.embed_tokens(input_ids) if input_embeds is None else input_embeds.clone()
        turn = angles(self._rotary, positions)
        for layer in self._layers:
            hidden += _attention(layer, normalize(hidden, layer.before_attention), turn, forward_batch, backend)
            hidden += _mlp(layer, normalize(hidden, layer.before_mlp))
        return normalize(hidden, self._inner.norm)


def _attention(
    layer: _Layer, x: Tensor, turn: tuple[Tensor, Tensor], forward_batch: Any, backend: GrapeAttentionBackend
) -> Tensor:
    attention = layer.attention
    heads, kv_heads = attention.tp_q_head_num, attention.tp_k_head_num
    # [tokens, query, key and value heads, size]
    mixed = packed_linear(x, layer.qkv, layer.qkv.bias).view(len(x), heads + 2 * kv_heads, -1)
    both = mixed[:, : heads + kv_heads]
    if layer.head_norms is not None:
        query_norm, key_norm = layer.head_norms
        both = torch.cat((normalize(both[:, :heads], query_norm), normalize(both[:, heads:], key_norm)), 1)
    both = rotate_heads(both, *turn)
    output = backend.run(both[:, :heads], both[:, heads:], mixed[:, heads + kv_heads :], attention, forward_batch)
    return packed_linear(output.view(len(x), -1), layer.out, layer.out.bias)


def _mlp(layer: _Layer, x: Tensor) -> Tensor:
    gated = silu_and_mul(None, packed_linear(x, layer.gate_up, layer.gate_up.bias))
    return packed_linear(gated, layer.down, layer.down.bias)


def _layer(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    norms = (attention.q_norm, attention.k_norm) if hasattr(attention, "q_norm") else None
    return _Layer(
        before_attention=layer.input_layernorm,
        qkv=attention.qkv_proj,
        head_norms=norms,
        attention=attention.attn,
        out=attention.o_proj,
        before_mlp=layer.post_attention_layernorm,
        gate_up=mlp.gate_up_proj,
        down=mlp.down_proj,
    )


def install(model: nn.Module) -> bool:
    """Let the stack stand in where it covers all that the model and the settings ask for; returns whether it does."""
    inner: Any = getattr(model, "model", None)
    if type(inner) not in STACKABLE or not _covers(inner):
        return False
    inner.forward = DenseStack(inner).forward
    return True


def _covers(inner: Any) -> bool:
    parallel, settings = get_parallel(), get_server_args()
    if parallel.tp_size > 1 or parallel.pp_group.world_size > 1 or settings.enable_lora or settings.forward_hooks:
        return False
    rotary = inner.layers[0].self_attn.rotary_emb
    if rotary.rotary_dim != rotary.head_size or not rotary.is_neox_style:
        return False
    for layer in map(_layer, inner.layers):
        linears = (layer.qkv, layer.out, layer.gate_up, layer.down)
        if not all(map(is_plain, linears)):
            return False
        if layer.attention.quant_method is not None or layer.attention.k_scale is not None:
            return False
        norms = (layer.before_attention, layer.before_mlp, *(layer.head_norms or ()))
        if any(norm.cast_x_before_out_mul or norm.fp32_residual or norm.variance_size_override for norm in norms):
            return False
    return True
