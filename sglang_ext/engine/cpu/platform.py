"""The CPU platform: SGLang on plain torch operations, for machines without an accelerator."""

from __future__ import annotations

from typing import Any

from sglang.srt.platforms.cpu import CpuDeviceMixin
from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform

# Enough for a laptop to try workflows; a user's own flag wins.
DEFAULT_POOL_TOKENS = 32768
DEFAULT_MEMORY_FRACTION = 0.1
DEFAULT_CHUNK = 512


class GrapeCpuPlatform(CpuDeviceMixin, SRTPlatform):  # type: ignore[misc]
    """Registered under `sglang.srt.platforms` as `grape_cpu`.

    The attention backend keeps SGLang's name `torch_native`, since SGLang asks for that name
    wherever a Triton kernel would be used, but its two attention functions are ours.
    """

    _enum = PlatformEnum.OOT
    device_name = "cpu"
    device_type = "cpu"
    capabilities = PlatformCapabilities()

    def init_backend(self) -> None:
        _use_own_attention()

    def apply_server_args_defaults(self, server_args: Any) -> None:
        _use_own_attention()
        defaults = {
            "device": "cpu",
            "attention_backend": self.get_default_attention_backend(),
            "sampling_backend": "pytorch",
            "max_total_tokens": DEFAULT_POOL_TOKENS,
            "mem_fraction_static": DEFAULT_MEMORY_FRACTION,
            "chunked_prefill_size": DEFAULT_CHUNK,
        }
        for name, value in defaults.items():
            if getattr(server_args, name) is None:
                setattr(server_args, name, value)
        server_args.disable_cuda_graph = True

    def get_default_attention_backend(self) -> str:
        return "torch_native"

    def get_device(self, device_id: int = 0) -> str:
        # A name, not a torch.device: SGLang's own resolution of --device splits it at a colon.
        return "cpu"

    def get_compile_backend(self, mode: str | None = None) -> str:
        # Inductor, the default, needs a C++ compiler, and half a minute for its first kernel.
        return "eager"

    def is_pin_memory_available(self, device: Any = None) -> bool:
        return False


def _use_own_attention() -> None:
    # SGLang imports the platform before the modules that these two need.
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

    from sglang_ext.engine.cpu.attention import create_attention_backend

    ATTENTION_BACKENDS["torch_native"] = create_attention_backend
