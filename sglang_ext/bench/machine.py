"""The machine and the versions that a measurement belongs to."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from pydantic import BaseModel, ConfigDict

from sglang_ext.engine.cpu.machine import processor


class Machine(BaseModel):
    """Args: memory_bytes: of the whole machine. accelerator: None on a CPU. variables: those that set threads."""

    model_config = ConfigDict(frozen=True)

    system: str
    processor: str
    cpus: int
    memory_bytes: int
    accelerator: str | None
    variables: dict[str, str]


def this_machine() -> Machine:
    import torch

    return Machine(
        system=platform.platform(),
        processor=processor(),
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        accelerator=torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        variables={name: value for name, value in sorted(os.environ.items()) if name.startswith("OMP_")},
    )


def load_average() -> float:
    """Over the last minute."""
    return round(os.getloadavg()[0], 2)


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("grape-dsl", "sglang", "torch")} | {"python": platform.python_version()}
