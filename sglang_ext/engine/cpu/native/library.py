"""The compiled code in this process."""

from __future__ import annotations

import ctypes
import logging
from functools import cache
from pathlib import Path

from sglang_ext.engine.cpu.native.compiling import NotCompiled, compiled
from sglang_ext.settings import CpuKernel, EngineSettings

logger = logging.getLogger(__name__)


class NativeLibrary:
    """The functions of the C code, and what they need of the OpenMP that torch has loaded.

    Args:
        file: the shared library.

    Raises:
        NotCompiled: it cannot be loaded, or torch runs on threads of another kind.
    """

    def __init__(self, file: Path) -> None:
        import torch

        try:
            # The interpreter's lock is kept: a call takes microseconds, and so might the wait to get it back.
            code = ctypes.PyDLL(str(file))
            # Looks in what torch is linked with, and nowhere else.
            openmp = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
            self.parallel, self.thread, self.team = (
                ctypes.cast(getattr(openmp, name), ctypes.c_void_p).value
                for name in ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
            )
        except (OSError, AttributeError) as error:
            raise NotCompiled(f"the compiled code cannot be used with this torch: {error}") from None
        code.grape_scratch_bytes.restype = ctypes.c_int64
        self.scratch_bytes = int(code.grape_scratch_bytes())
        self.attend = code.grape_attend
        self.attend.restype = None
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.attend.argtypes = [pointer, pointer, number, pointer, pointer, pointer, ctypes.c_float]


def native_library() -> NativeLibrary | None:
    """The library; None where it is off, or cannot be had, which the log says once."""
    if EngineSettings.from_environment().cpu_kernel is CpuKernel.OFF:
        return None
    found = _load()
    return None if isinstance(found, NotCompiled) else found


def described(choice: CpuKernel) -> str:
    """What attention runs on and why, for `grape doctor`; compiles it if that has not been done."""
    if choice is CpuKernel.OFF:
        return "torch, since GRAPE_CPU_KERNEL is off"
    found = _load()
    return f"torch, slower than compiled: {found}" if isinstance(found, NotCompiled) else "compiled for this CPU"


@cache
def _load() -> NativeLibrary | NotCompiled:
    try:
        return NativeLibrary(compiled())
    except NotCompiled as error:
        logger.warning("Attention runs on plain torch, slower than compiled: %s.", error)
        return error
