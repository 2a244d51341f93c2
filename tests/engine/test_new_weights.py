"""Weights that replace a running model's, however they come, are those that it computes with."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod
from sglang.srt.model_executor.model_runner_components import weight_updater
from sglang.srt.model_executor.model_runner_components.weight_updater import WeightUpdater
from torch import Tensor, nn
from torch.nn.functional import linear

from sglang_ext.engine.cpu.new_weights import follow_loads, follow_updates
from sglang_ext.engine.cpu.packed_linear import PACKED, pack_model


class Model(nn.Module):
    """One packed layer, loaded as SGLang's models are."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(24, 40, bias=False)
        self.layer.requires_grad_(False)
        self.layer.quant_method = UnquantizedLinearMethod()
        pack_model(self)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        for name, weight in weights:
            dict(self.named_parameters())[name].data.copy_(weight)

    def forward(self, x: Tensor) -> Tensor:
        product: Tensor = self.layer.quant_method.apply(self.layer, x)
        return product


def own_loader(model: Model, weights: Iterable[tuple[str, Tensor]]) -> None:
    for _, weight in weights:
        model.layer.weight.data.copy_(weight)


def failing_loader(model: Model, weights: Iterable[tuple[str, Tensor]]) -> None:
    own_loader(model, weights)
    raise RuntimeError("the rest is missing")


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def updater(model: Model, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(WeightUpdater, "update_weights_from_tensor", WeightUpdater.update_weights_from_tensor)
    monkeypatch.setattr(weight_updater, "get_parallel", lambda: SimpleNamespace(tp_rank=0))
    monkeypatch.setattr(WeightUpdater, "_assert_weight_cache_inactive", lambda self, what: None)
    follow_updates()
    follow_loads(model)
    loaders = [f"{__name__}.own_loader", f"{__name__}.failing_loader"]
    monkeypatch.setattr(weight_updater, "dynamic_import", lambda name: globals()[name.rsplit(".", 1)[1]])
    fields = {name: None for name in WeightUpdater.__dataclass_fields__ if not name.startswith("_")}
    return WeightUpdater(**fields | {"device": "cpu", "get_model": lambda: model, "custom_weight_loaders": loaders})


def check(model: Model, weight: Tensor) -> None:
    x = torch.randn(3, 24)
    assert PACKED in model.layer.__dict__
    torch.testing.assert_close(model(x), linear(x, weight))


@pytest.mark.parametrize("load_format", [None, "direct", f"{__name__}.own_loader"])
def test_tensors(load_format: str | None, model: Model, updater: Any) -> None:
    weight = torch.randn(40, 24)
    assert updater.update_weights_from_tensor([("layer.weight", weight)], load_format=load_format) == (True, "Success")
    check(model, weight)


def test_a_loader_that_fails_halfway(model: Model, updater: Any) -> None:
    weight = torch.randn(40, 24)
    with pytest.raises(RuntimeError, match="the rest is missing"):
        updater.update_weights_from_tensor([("layer.weight", weight)], load_format=f"{__name__}.failing_loader")
    check(model, weight)


def test_weights_of_the_models_own_loader(model: Model, updater: Any) -> None:
    weight = torch.randn(40, 24)
    model.load_weights([("layer.weight", weight)])
    check(model, weight)


def test_layers_that_were_not_packed_stay_so(model: Model, updater: Any) -> None:
    del model.layer.__dict__[PACKED]
    weight = torch.randn(40, 24)
    updater.update_weights_from_tensor([("layer.weight", weight)], load_format="direct")
    assert PACKED not in model.layer.__dict__
    torch.testing.assert_close(model(torch.ones(1, 24)), linear(torch.ones(1, 24), weight))
