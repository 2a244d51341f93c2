"""Decides whether the CPU platform is the one to use; SGLang calls it in each process before it imports a backend."""

from __future__ import annotations

import os

PLATFORM = "sglang_ext.engine.cpu.platform.GrapeCpuPlatform"


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
    return PLATFORM
