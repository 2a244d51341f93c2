"""The CPU platform: SGLang on plain torch operations, for machines without an accelerator."""

from __future__ import annotations

import logging
from typing import Any

from sglang.srt.platforms.cpu import CpuDeviceMixin
from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform

# Enough for a laptop to try workflows; a user's own flag wins.
DEFAULT_POOL_TOKENS = 32768
DEFAULT_MEMORY_FRACTION = 0.1
DEFAULT_CHUNK = 512
ATTENTION = "grape_cpu"

logger = logging.getLogger(__name__)


class GrapeCpuPlatform(CpuDeviceMixin, SRTPlatform):  # type: ignore[misc]
    """Registered under `sglang.srt.platforms` as `grape_cpu`."""

    _enum = PlatformEnum.OOT
    device_name = "cpu"
    device_type = "cpu"
    capabilities = PlatformCapabilities()

    def init_backend(self) -> None:
        _register()

    def apply_server_args_defaults(self, server_args: Any) -> None:
        _register()
        # SGLang has put that in for any CPU by now; its kernels are in no package of a registry.
        if server_args.attention_backend in (None, "intel_amx"):
            server_args.attention_backend = ATTENTION
        defaults = {
            "device": "cpu",
            "sampling_backend": "pytorch",
            "max_total_tokens": DEFAULT_POOL_TOKENS,
            "mem_fraction_static": DEFAULT_MEMORY_FRACTION,
            "chunked_prefill_size": DEFAULT_CHUNK,
        }
        for name, value in defaults.items():
            if getattr(server_args, name) is None:
                setattr(server_args, name, value)
        if server_args.dtype == "auto":
            server_args.dtype = "bfloat16" if _has_bf16() else "float32"
        server_args.disable_cuda_graph = True
        # At rest SGLang polls without pause, which takes a whole core from whoever else works on this machine.
        server_args.sleep_on_idle = True

    def get_default_attention_backend(self) -> str:
        return ATTENTION

    def get_device(self, device_id: int = 0) -> str:
        # A name, not a torch.device: SGLang's own resolution of --device splits it at a colon.
        return "cpu"

    def get_dispatch_key_name(self) -> str:
        return ATTENTION

    def get_compile_backend(self, mode: str | None = None) -> str:
        # Inductor, the default, needs a C++ compiler, and half a minute for its first kernel.
        return "eager"

    def is_pin_memory_available(self, device: Any = None) -> bool:
        return False

    def post_load_model(self, model: Any) -> None:
        from sglang_ext.engine.cpu import dense_stack
        from sglang_ext.engine.cpu.fused_ops import forget_weights
        from sglang_ext.engine.cpu.packed_linear import pack, pack_model

        packed = pack_model(model)
        stacked = dense_stack.install(model)
        layers = "dense layers in one loop" if stacked else "SGLang's own layers"
        logger.info("Grape's CPU platform: %s, %d packed linear layers.", layers, len(packed))
        load = model.load_weights

        def load_and_pack(*args: Any, **kwargs: Any) -> Any:
            loaded = load(*args, **kwargs)
            forget_weights(model)
            for layer in packed:
                pack(layer)
            return loaded

        # New weights for a running model come in here.
        model.load_weights = load_and_pack


def _has_bf16() -> bool:
    """Whether the CPU multiplies bfloat16 in hardware; emulated, it is slower than float32."""
    import torch

    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def _register() -> None:
    """Make our attention and fused operations known to SGLang."""
    # SGLang imports the platform before the modules that these need.
    from sglang.srt.arg_groups.choices import ATTENTION_BACKEND_CHOICES
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

    if ATTENTION in ATTENTION_BACKENDS:
        return
    from sglang.srt.mem_cache import allocation

    from sglang_ext.engine.cpu import fused_ops
    from sglang_ext.engine.cpu.attention_backend import GrapeAttentionBackend

    ATTENTION_BACKENDS[ATTENTION] = GrapeAttentionBackend
    if ATTENTION not in ATTENTION_BACKEND_CHOICES:
        ATTENTION_BACKEND_CHOICES.append(ATTENTION)
    # SGLang takes the plain function for backends that it knows only, and a Triton kernel for all others.
    allocation.get_last_loc_triton = allocation.get_last_loc_torch
    fused_ops.register(ATTENTION)
