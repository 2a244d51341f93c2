"""What `grape bench engine` compares."""

from __future__ import annotations

from sglang_ext.bench.arms import EngineKind
from sglang_ext.settings import Streaming

PLATFORM, TORCH_NATIVE = "platform", "torch_native"
TRANSFORMERS = ("transformers-sdpa", "transformers-eager")
"""The baselines, by the attention that they use."""

ENGINES = {
    # Both with Grape's scheduler, so that nothing but the platform's parts differs.
    PLATFORM: EngineKind(PLATFORM, Streaming.ON),
    TORCH_NATIVE: EngineKind(
        TORCH_NATIVE,
        Streaming.ON,
        flags=("--attention-backend", "torch_native"),
        environment=(
            ("GRAPE_CPU_PACKED_LINEAR", "off"),
            ("GRAPE_CPU_STACK", "off"),
            ("GRAPE_CPU_FUSED_OPS", "off"),
        ),
    ),
}
# A run relies on the prefix cache and on the first rank's steps.
OWN_FLAGS = ("attention_backend", "disable_radix_cache", "tp_size")

ABOUT = {
    PLATFORM: "SGLang on Grape's CPU platform",
    TORCH_NATIVE: "the same with SGLang's torch_native attention, its own layers and unpacked weights",
    TRANSFORMERS[0]: "transformers, a static batch with its KV cache, scaled_dot_product_attention",
    TRANSFORMERS[1]: "the same with its eager attention",
}
