"""The CPU platform: SGLang on plain torch operations, for machines without an accelerator."""

from __future__ import annotations

import logging
from typing import Any

from sglang.srt.platforms.cpu import CpuDeviceMixin
from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform

from sglang_ext.engine.cpu import defaults
from sglang_ext.engine.cpu.machine import this_machine
from sglang_ext.engine.cpu.pool_size import pool_tokens
from sglang_ext.settings import EngineSettings, Switch

ATTENTION = "grape_cpu"
# SGLang keeps back the rest of the free memory; the size of the pool is set here.
MEMORY_FRACTION = 0.9

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
        if server_args.dtype == "auto":
            server_args.dtype = "bfloat16" if defaults.has_bf16() else "float32"
        if server_args.max_total_tokens is None and server_args.mem_fraction_static is None:
            server_args.max_total_tokens = _pool_tokens(server_args)
        for name, value in {
            "device": "cpu",
            "sampling_backend": "pytorch",
            "mem_fraction_static": MEMORY_FRACTION,
            "chunked_prefill_size": defaults.CHUNK,
            "max_running_requests": defaults.RUNNING_REQUESTS,
        }.items():
            if getattr(server_args, name) is None:
                setattr(server_args, name, value)
        server_args.disable_cuda_graph = True
        # Steps run on the processor that forms them: nothing overlaps, and each token would leave a step later.
        if EngineSettings.from_environment().cpu_overlap is Switch.OFF:
            server_args.disable_overlap_schedule = True
        # At rest SGLang polls without pause, which takes a whole core from whoever else works on this machine.
        server_args.sleep_on_idle = True

    def get_default_attention_backend(self) -> str:
        return ATTENTION

    def get_device(self, device_id: int = 0) -> str:
        # A name, not a torch.device: SGLang's own resolution of --device splits it at a colon.
        return "cpu"

    def get_dispatch_key_name(self) -> str:
        return ATTENTION

    def get_kv_pool_cls(self, *, kind: str) -> type | None:
        if kind != "mha":
            return None
        from sglang_ext.engine.cpu.lazy_pool import LazyKVPool

        return LazyKVPool

    def get_compile_backend(self, mode: str | None = None) -> str:
        # Inductor, the default, needs a C++ compiler, and half a minute for its first kernel.
        return "eager"

    def is_pin_memory_available(self, device: Any = None) -> bool:
        return False

    def post_load_model(self, model: Any) -> None:
        import torch
        from sglang.srt.runtime_context import get_parallel

        from sglang_ext.engine.cpu import dense_stack
        from sglang_ext.engine.cpu.new_weights import follow_loads
        from sglang_ext.engine.cpu.packed_linear import pack_model

        count = defaults.threads(this_machine(), get_parallel().tp_size)
        if count is not None:
            torch.set_num_threads(count)
        settings = EngineSettings.from_environment()
        packed = pack_model(model) if settings.cpu_packed_linear is Switch.ON else 0
        wanted = settings.cpu_stack is Switch.ON and settings.cpu_fused_ops is Switch.ON
        stacked = wanted and dense_stack.install(model)
        follow_loads(model)
        layers = "dense layers in one loop" if stacked else "SGLang's own layers"
        logger.info(
            "Grape's CPU platform: %s, %d packed linear layers, %d threads.", layers, packed, torch.get_num_threads()
        )


def _pool_tokens(server_args: Any) -> int | None:
    """The pool's size; None leaves it to SGLang, for models whose KV is of another kind."""
    from sglang_ext.engine.cpu.model_size import model_size

    copies = 2 if EngineSettings.from_environment().cpu_packed_linear is Switch.ON else 1
    model = model_size(server_args, server_args.dtype, copies)
    return None if model is None else pool_tokens(this_machine(), model)


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
    from sglang_ext.engine.cpu.new_weights import follow_updates

    ATTENTION_BACKENDS[ATTENTION] = GrapeAttentionBackend
    if ATTENTION not in ATTENTION_BACKEND_CHOICES:
        ATTENTION_BACKEND_CHOICES.append(ATTENTION)
    # SGLang takes the plain function for backends that it knows only, and a Triton kernel for all others.
    allocation.get_last_loc_triton = allocation.get_last_loc_torch
    if EngineSettings.from_environment().cpu_fused_ops is Switch.ON:
        fused_ops.register(ATTENTION)
    follow_updates()
