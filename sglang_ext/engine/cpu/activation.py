"""Decides whether the CPU platform is the one to use; SGLang calls it in each process before it imports a backend."""

from __future__ import annotations

import gc
import os

PLATFORM = "sglang_ext.engine.cpu.platform.GrapeCpuPlatform"
# Importing SGLang makes a million objects; at Python's own thresholds a fifth of that time goes into looking
# for garbage among them.
GARBAGE_THRESHOLDS = (50_000, 20, 100)
# SGLang's registry imports each of its models, unless a package of further ones has the model that is asked for.
MODEL_PACKAGE = "SGLANG_EXTERNAL_MODEL_PACKAGE"
KNOWN_MODELS = "sglang_ext.engine.cpu.known_models"


def platform() -> str | None:
    """The dotted name of the CPU platform, or None where SGLang has a platform of its own.

    None with an accelerator, and where the user chose SGLang's in-tree CPU engine.
    """
    if os.environ.get("SGLANG_USE_CPU_ENGINE", "0").lower() in ("1", "true"):
        return None
    import torch

    accelerators = (torch.cuda, torch.xpu, torch.mps)
    if any(device.is_available() for device in accelerators):
        return None
    if gc.get_threshold() < GARBAGE_THRESHOLDS:
        gc.set_threshold(*GARBAGE_THRESHOLDS)
    os.environ.setdefault(MODEL_PACKAGE, KNOWN_MODELS)
    return PLATFORM
