"""What the extension does not run with yet; an engine started so is refused by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any


class UnsupportedEngine(RuntimeError):
    """The engine was started with features that the extension does not support."""


Check = Callable[[Any], bool]

UNSUPPORTED: Mapping[str, Check] = {
    "data parallelism (--dp-size), as a run's tasks have to meet in one scheduler": lambda args: args.dp_size > 1,
    "pipeline parallelism (--pp-size)": lambda args: args.pp_size > 1,
    "prefill-decode disaggregation (--disaggregation-mode)": lambda args: args.disaggregation_mode != "null",
    "speculative decoding (--speculative-algorithm)": lambda args: args.speculative_algorithm is not None,
    "diffusion models (--dllm-algorithm)": lambda args: args.dllm_algorithm is not None,
    "PD multiplexing (--enable-pdmux)": lambda args: args.enable_pdmux,
    "hierarchical sparse attention (--enable-hisparse)": lambda args: args.enable_hisparse,
    "DP attention (--enable-dp-attention)": lambda args: args.enable_dp_attention,
    "context parallelism (--attn-cp-size, --dcp-size)": lambda args: args.attn_cp_size > 1 or args.dcp_size > 1,
    "KV cache sharding (--enable-kv-cache-sharding)": lambda args: args.enable_kv_cache_sharding,
    "hierarchical cache (--enable-hierarchical-cache)": lambda args: args.enable_hierarchical_cache,
    "LMCache (--enable-lmcache)": lambda args: args.enable_lmcache,
    "FlexKV (--enable-flexkv)": lambda args: args.enable_flexkv,
    "automatic truncation (--allow-auto-truncate)": lambda args: args.allow_auto_truncate,
    "no tokenizer in the engine (--skip-tokenizer-init)": lambda args: args.skip_tokenizer_init,
    "the Rust server (SGLANG_RUST_SERVER)": lambda args: os.environ.get("SGLANG_RUST_SERVER", "0") in ("1", "true"),
}


def refuse_unsupported(server_args: Any) -> None:
    """Raise UnsupportedEngine naming each unsupported feature that is on."""
    found = [name for name, check in UNSUPPORTED.items() if check(server_args)]
    if found:
        raise UnsupportedEngine(
            f"Grape does not run with {'; '.join(found)}. Start the engine without, "
            "or without Grape's scheduler: SGLANG_PLUGINS=grape_cpu"
        )


def refuse_unsupported_model(scheduler: Any) -> None:
    """Raise UnsupportedEngine for a model whose KV cannot be filled piece by piece."""
    kinds = {
        "sliding-window attention": scheduler.is_hybrid_swa,
        "state-space layers": scheduler.tree_cache.supports_mamba(),
        "embeddings for output": not scheduler.is_generation,
        "a tokenizer that is none of the tokenizers package": not hasattr(scheduler.tokenizer, "backend_tokenizer"),
    }
    found = [name for name, present in kinds.items() if present]
    if found:
        raise UnsupportedEngine(
            f"Grape does not run models with {', '.join(found)} yet. "
            "Start the engine without Grape's scheduler: SGLANG_PLUGINS=grape_cpu"
        )
