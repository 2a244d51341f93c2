"""What SGLang leaves in the file system after an engine of its own: sockets, and its load in shared memory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

_SCHEME = "ipc://"


def engine_files(ports: Any) -> list[Path]:
    """The files that are made for the engine with these `PortArgs`; no other engine has them."""
    from sglang.srt.managers.load_snapshot import shm_path_for

    names = [value for value in vars(ports).values() if isinstance(value, str)]
    sockets = [Path(name.removeprefix(_SCHEME)) for name in names if name.startswith(_SCHEME)]
    return [*sockets, Path(shm_path_for(ports.instance_id))] if ports.instance_id else sockets


def remove_files(ports: Any) -> None:
    """Remove what is there of them. The engine's processes have ended."""
    for file in engine_files(ports):
        with suppress(OSError):
            file.unlink(missing_ok=True)
