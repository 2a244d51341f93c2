"""Compiles the C code once per machine and keeps the result in the user's cache folder."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sglang_ext.settings import cache_folder

SOURCE = Path(__file__).with_name("paged_attention.c")
COMPILERS = ("cc", "gcc", "clang")
NEEDED = {"avx2", "fma"}
# Not linked with OpenMP: torch has brought one, and threads of a second one would fight with its own.
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared", "-Wno-psabi")
MOST_SECONDS = 120
_CPUINFO = Path("/proc/cpuinfo")
_DIGEST = hashlib.sha256().digest_size


class NotCompiled(RuntimeError):
    """There is no compiled code here; says why."""


def compiled(flags: Sequence[str] = FLAGS) -> Path:
    """The shared library for this machine, made if need be; several processes may ask at once.

    Raises:
        NotCompiled: the machine is of another kind, has no compiler, or the compiler fails.
    """
    features = _cpu_features()
    if not (sys.platform == "linux" and platform.machine() == "x86_64" and features >= NEEDED):
        raise NotCompiled("the code is for x86-64 with AVX2, on Linux")
    found = [path for path in map(shutil.which, COMPILERS) if path]
    if not found:
        raise NotCompiled(f"there is no C compiler ({', '.join(COMPILERS)}) in PATH")
    failure = ""
    for compiler in found:
        try:
            version = _output([compiler, "--version"])
            library = cache_folder() / "native" / f"{_key(version, flags, features)}.so"
            if not _is_whole(library):
                _make(library, [compiler, *flags])
            return library
        except (OSError, subprocess.SubprocessError) as error:
            failure = failure or f"{compiler}: {_reason(error)}"
    raise NotCompiled(failure)


def _cpu_features() -> set[str]:
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.split()[2:]) for line in lines if line.startswith("flags")), set())


def _key(version: str, flags: Sequence[str], features: set[str]) -> str:
    sources = [file.read_text() for file in sorted(SOURCE.parent.glob("*.[ch]"))]
    whole = "\0".join([version, *flags, *sorted(features), *sources])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def _is_whole(library: Path) -> bool:
    """Whether the file ends with the digest of what is before; loading one that was cut off can end the process."""
    try:
        contents = library.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(contents[:-_DIGEST]).digest() == contents[-_DIGEST:]


def _make(library: Path, command: list[str]) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        _output([*command, "-o", str(made), str(SOURCE)])
        contents = made.read_bytes()
        made.write_bytes(contents + hashlib.sha256(contents).digest())
        made.replace(library)


def _output(command: list[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=MOST_SECONDS, errors="replace")
    return done.stdout


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError) and error.stderr.strip():
        return str(error.stderr.strip().splitlines()[0])
    return str(error)
