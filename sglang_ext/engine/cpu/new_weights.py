"""Weights that replace a running model's: what was made from the old ones is made anew."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from sglang.srt.model_executor.model_runner_components.weight_updater import WeightUpdater
from torch import nn

from sglang_ext.engine.cpu.fused_ops import forget_weights
from sglang_ext.engine.cpu.packed_linear import pack_again


def refresh(model: nn.Module) -> None:
    """Make what stands beside the weights, packed copies and doubled norms, from the weights as they are now."""
    forget_weights(model)
    pack_again(model)


def follow_loads(model: Any) -> None:
    """Refresh after each `model.load_weights`: from files, from tensors, from another process group."""
    model.load_weights = _refreshing(model.load_weights, lambda: model)


def follow_updates() -> None:
    """Refresh after tensors that are copied into the parameters without the model's own loader.

    That is what SGLang does for `load_format="direct"` and for loaders of the user's.
    """
    update = WeightUpdater.update_weights_from_tensor

    @functools.wraps(update)
    def updated(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _refreshing(functools.partial(update, self), self.get_model)(*args, **kwargs)

    WeightUpdater.update_weights_from_tensor = updated


def _refreshing(load: Callable[..., Any], model: Callable[[], Any]) -> Callable[..., Any]:
    @functools.wraps(load)
    def load_and_refresh(*args: Any, **kwargs: Any) -> Any:
        try:
            return load(*args, **kwargs)
        finally:
            # A load that fails halfway has changed some.
            refresh(model())

    return load_and_refresh
