"""Engines that are refused at start-up, by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sglang_ext.engine.unsupported import (
    UNSUPPORTED,
    UnsupportedEngine,
    refuse_unsupported,
    refuse_unsupported_model,
)

ON: dict[str, tuple[str, Any]] = {
    "--dp-size": ("dp_size", 2),
    "--pp-size": ("pp_size", 2),
    "--disaggregation-mode": ("disaggregation_mode", "prefill"),
    "--speculative-algorithm": ("speculative_algorithm", "EAGLE"),
    "--dllm-algorithm": ("dllm_algorithm", "LowConfidence"),
    "--enable-pdmux": ("enable_pdmux", True),
    "--enable-hisparse": ("enable_hisparse", True),
    "--enable-dp-attention": ("enable_dp_attention", True),
    "--attn-cp-size": ("attn_cp_size", 2),
    "--enable-kv-cache-sharding": ("enable_kv_cache_sharding", True),
    "--enable-hierarchical-cache": ("enable_hierarchical_cache", True),
    "--enable-lmcache": ("enable_lmcache", True),
    "--enable-flexkv": ("enable_flexkv", True),
    "--allow-auto-truncate": ("allow_auto_truncate", True),
    "--skip-tokenizer-init": ("skip_tokenizer_init", True),
}


@pytest.fixture(scope="module")
def defaults() -> dict[str, Any]:
    """SGLang's own defaults, so that a renamed field fails here."""
    from sglang.srt.server_args import ServerArgs

    args = ServerArgs(model_path="none")
    names = {name for name, _ in ON.values()} | {"dcp_size"}
    return {name: getattr(args, name) for name in names}


def test_plain_engines_pass(defaults: dict[str, Any]) -> None:
    refuse_unsupported(SimpleNamespace(**defaults))


@pytest.mark.parametrize("flag", ON)
def test_each_is_refused_by_name(flag: str, defaults: dict[str, Any]) -> None:
    name, value = ON[flag]
    with pytest.raises(UnsupportedEngine, match=flag):
        refuse_unsupported(SimpleNamespace(**(defaults | {name: value})))


def test_the_rust_server_is_refused(defaults: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_RUST_SERVER", "1")
    with pytest.raises(UnsupportedEngine, match="SGLANG_RUST_SERVER"):
        refuse_unsupported(SimpleNamespace(**defaults))


def test_every_refusal_is_tested() -> None:
    assert len(UNSUPPORTED) == len(ON) + 1


def test_models_whose_kv_cannot_grow_are_refused() -> None:
    scheduler = SimpleNamespace(
        is_hybrid_swa=True,
        tree_cache=SimpleNamespace(supports_mamba=lambda: True),
        is_generation=True,
        tokenizer=SimpleNamespace(backend_tokenizer=None),
    )
    with pytest.raises(UnsupportedEngine, match="sliding-window attention, state-space layers"):
        refuse_unsupported_model(scheduler)
