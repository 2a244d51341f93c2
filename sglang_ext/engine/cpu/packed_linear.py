"""Linear layers through oneDNN, with weights in the layout that its kernels want, made once after loading."""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.quantization.unquant import UnquantizedEmbeddingMethod, UnquantizedLinearMethod
from sglang.srt.layers.vocab_parallel_embedding import VocabParallelEmbedding
from torch import Tensor, nn
from torch.nn.functional import linear

PACKED = "packed_weight"
PACKABLE = (torch.bfloat16, torch.float32)
_multiply = torch.ops.mkldnn._linear_pointwise.default


class PackedLinearMethod(UnquantizedLinearMethod):  # type: ignore[misc]
    """A linear layer whose packed weight stands beside the plain one."""

    def apply(self, layer: nn.Module, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """x: [..., in] -> [..., out], x's dtype."""
        return packed_linear(x, layer, bias)

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        pack(layer)


class PackedHeadMethod(UnquantizedEmbeddingMethod):  # type: ignore[misc]
    """The head: a packed matrix for logits, and the plain one for the lookup of tied embeddings.

    The name differs from SGLang's own unquantized method, for which its logits processor multiplies itself.
    """

    def apply(self, layer: nn.Module, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """x: [rows, hidden] -> [rows, vocabulary], x's dtype."""
        return packed_linear(x, layer, bias)

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        pack(layer)


def packed_linear(x: Tensor, layer: Any, bias: Tensor | None) -> Tensor:
    """`linear(x, layer.weight, bias)`, through the packed weight if the layer has one."""
    packed = layer.__dict__.get(PACKED)
    if packed is None or x.dtype != layer.weight.dtype:
        return linear(x, layer.weight, bias)
    product: Tensor = _multiply(x, packed, bias, "none", [], "")
    return product


def is_plain(layer: Any) -> bool:
    """Whether `packed_linear` computes what the layer does: it is neither quantized nor adapted."""
    return type(layer.quant_method) in (PackedLinearMethod, UnquantizedLinearMethod)


def pack(layer: Any) -> None:
    """Pack a layer's weight as it is now."""
    packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), None)
    # Not a parameter: neither saved nor moved.
    layer.__dict__[PACKED] = packed


def pack_again(model: nn.Module) -> None:
    """Pack the weights of those layers that were packed before."""
    for layer in model.modules():
        if PACKED in layer.__dict__:
            pack(layer)


def can_pack(dtype: torch.dtype) -> bool:
    """Whether this torch packs weights of that type on this machine."""
    if dtype not in PACKABLE or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if dtype is torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    return hasattr(torch.ops.mkldnn, "_reorder_linear_weight")


def pack_model(model: nn.Module) -> int:
    """Pack each plain linear layer and the head of a loaded model; returns how many that are."""
    packed = 0
    head = getattr(model, "lm_head", None)
    for layer in model.modules():
        method = getattr(layer, "quant_method", None)
        weight = getattr(layer, "weight", None)
        if not isinstance(weight, Tensor) or weight.dim() != 2 or not can_pack(weight.dtype):
            continue
        if type(method) is UnquantizedLinearMethod:
            layer.quant_method = PackedLinearMethod()
        elif layer is head and isinstance(layer, VocabParallelEmbedding) and type(method) is UnquantizedEmbeddingMethod:
            layer.quant_method = PackedHeadMethod()
        else:
            continue
        pack(layer)
        packed += 1
    return packed
