"""Packed linear layers: the same products, also after new weights were loaded."""

from __future__ import annotations

import pytest
import torch
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod
from torch import nn
from torch.nn.functional import linear

from sglang_ext.engine.cpu.packed_linear import PackedLinearMethod, can_pack, pack_model


class Layer(nn.Module):
    """A plain linear layer as SGLang's are."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(40, 24).to(dtype), requires_grad=False)
        self.quant_method = UnquantizedLinearMethod()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 3, 70])
@pytest.mark.parametrize("with_bias", [False, True])
def test_products(dtype: torch.dtype, rows: int, with_bias: bool) -> None:
    layer, x = Layer(dtype), torch.randn(rows, 24).to(dtype)
    bias = torch.randn(40).to(dtype) if with_bias else None
    if not can_pack(dtype):
        pytest.skip(f"oneDNN does not take {dtype} here")
    assert pack_model(nn.Sequential(layer)) == 1
    assert isinstance(layer.quant_method, PackedLinearMethod)
    torch.testing.assert_close(layer.quant_method.apply(layer, x, bias), linear(x, layer.weight, bias))


def test_new_weights_are_packed_again() -> None:
    layer, x = Layer(torch.float32), torch.randn(2, 24)
    pack_model(nn.Sequential(layer))
    layer.weight.data.copy_(torch.randn(40, 24))
    layer.quant_method.process_weights_after_loading(layer)
    torch.testing.assert_close(layer.quant_method.apply(layer, x), linear(x, layer.weight))


def test_other_layers_stay_as_they_are() -> None:
    half, other = Layer(torch.float16), Layer(torch.float32)
    other.quant_method = object()  # type: ignore[assignment]
    assert pack_model(nn.ModuleList([half, other, nn.Linear(3, 3)])) == 0
    assert type(half.quant_method) is UnquantizedLinearMethod
