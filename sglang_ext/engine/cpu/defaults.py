"""What the CPU platform sets where the user does not, and why; a user's flag or variable always wins."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sglang_ext.engine.cpu.machine import Machine, this_machine
from sglang_ext.engine.cpu.pool_size import GIB, WHOLE_CONTEXTS, room

CHUNK = 512
# Beyond this a step's products take as long as their rows do, so that more requests at once finish no sooner.
RUNNING_REQUESTS = 64
THREADS = "OMP_NUM_THREADS"


def has_bf16() -> bool:
    """Whether the CPU multiplies bfloat16 in hardware; emulated, it is slower than float32.

    False as well where `ONEDNN_MAX_CPU_ISA` keeps oneDNN from it.
    """
    import torch

    in_hardware = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return bool(in_hardware and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def threads(machine: Machine, ranks: int = 1, environ: Mapping[str, str] = os.environ) -> int | None:
    """Threads of each of `ranks` processes; None: the user has said so in `OMP_NUM_THREADS`."""
    return None if environ.get(THREADS) else max(1, machine.threads // ranks)


def described(machine: Machine | None = None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Each default with its reason, for `grape doctor`."""
    machine = machine or this_machine()
    count = threads(machine, environ=environ)
    quota = "" if machine.quota is None else f", a quota of {machine.quota:g} CPUs"
    by = f"{machine.cores} cores{quota}" if count else f"{THREADS}; {machine.cores} cores{quota}"
    free, inside = machine.free_memory, room(machine)
    memory = (
        "free memory is unknown"
        if free is None or inside is None
        else f"{inside / GIB:.1f} GiB for weights and KV, of {free / GIB:.1f} GiB free ({machine.memory_source})"
    )
    return {
        "dtype": "bfloat16, which the CPU has in hardware" if has_bf16() else "float32, no bfloat16 in hardware",
        "threads": f"{count or environ[THREADS]} ({by})",
        "KV pool": f"at most {WHOLE_CONTEXTS} whole contexts; {memory}",
        "chunk": f"{CHUNK} tokens",
        "running requests": str(RUNNING_REQUESTS),
    }
