"""SGLang loaded into this process, once for all of an engine's processes where that can be."""

from __future__ import annotations

import gc
import os
import sys
import threading
import warnings
from pathlib import Path

_TASKS = Path("/proc/self/task")
# Threads that Python does not know of, once SGLang was loaded; None: they cannot be told, or torch was in use before.
_own_threads: int | None = None


def load_sglang() -> None:
    """Import what an engine needs, without looking for garbage among a million new objects meanwhile."""
    global _own_threads
    if "sglang.srt.entrypoints.engine" in sys.modules:
        return
    fresh, collecting = "torch" not in sys.modules, gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            # Its parts for other devices say that this one is none of theirs.
            warnings.simplefilter("ignore", UserWarning)
            from sglang.srt.entrypoints.engine import Engine  # noqa: F401
    finally:
        # To the oldest generation, unseen.
        gc.freeze()
        gc.unfreeze()
        if collecting:
            gc.enable()
    _own_threads = _native_threads() if fresh else None


def start_method() -> str:
    """How multiprocessing should start an engine's processes from this one now.

    `fork` where they can take over what is loaded, which saves them ten seconds of imports: without an
    accelerator, and while nothing has computed here yet, since threads of a pool that has do not live on in
    a forked process, and the pool waits for them. Else `spawn`.
    """
    from sglang.srt.platforms import current_platform

    may_fork = current_platform.device_type == "cpu" and _own_threads is not None
    return "fork" if may_fork and _native_threads() == _own_threads else "spawn"


def _native_threads() -> int | None:
    return len(os.listdir(_TASKS)) - threading.active_count() if _TASKS.exists() else None  # noqa: PTH208
