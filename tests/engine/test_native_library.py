"""The compiled code: made once, shared by processes, and done without where it cannot be had."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from sglang_ext.engine.cpu.native import compiling, library
from sglang_ext.engine.cpu.native.compiling import FLAGS, NotCompiled, compiled
from sglang_ext.engine.cpu.native.library import NativeLibrary
from sglang_ext.settings import CpuKernel

ROOT = Path(__file__).parents[2]
# Quick to compile; what it does is not asked here.
QUICK = ["-O0", *FLAGS[1:]]
# Prints what the first call in a process finds, with the OpenMP libraries in use after a parallel call.
PROGRAM = """
import torch
from sglang_ext.engine.cpu.compiled_attention import CompiledAttention
from sglang_ext.engine.cpu.native.compiling import compiled
from sglang_ext.engine.cpu.native.library import NativeLibrary
torch.set_num_threads(2)
attention = CompiledAttention(NativeLibrary(compiled(FLAGS)), 4, 2, 32, torch.float32)
pool, query = torch.ones(300, 2, 32), torch.ones(1, 4, 32)
output = torch.empty_like(query)
attention.plan(torch.arange(300, dtype=torch.int32)[None], [0], [299], [1])
attention.attend(query, output, pool, pool, 1.0)
assert (output - 1).abs().max() < 1e-5
lines = open("/proc/self/maps").read().splitlines()
print(len({line.split()[-1] for line in lines if "libgomp" in line or "libomp" in line or "libiomp" in line}))
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GRAPE_CACHE_DIR", str(tmp_path / "cache"))
    library._load.cache_clear()
    yield
    library._load.cache_clear()


@pytest.fixture
def made(own_cache: None) -> Path:
    try:
        return compiled(QUICK)
    except NotCompiled as error:
        pytest.skip(str(error))


def test_it_is_made_once(made: Path) -> None:
    stamp = made.stat().st_mtime_ns
    assert compiled(QUICK) == made and made.stat().st_mtime_ns == stamp
    assert [file.name for file in made.parent.iterdir()] == [made.name]
    assert compiled([*QUICK, "-DOTHER"]) != made


@pytest.mark.parametrize("damage", ["cut", "empty", "changed"])
def test_a_broken_file_is_made_again(made: Path, damage: str) -> None:
    whole = made.read_bytes()
    broken = {"cut": whole[:5000], "empty": b"", "changed": whole[:3000] + b"\0\0\0\0" + whole[3004:]}[damage]
    made.unlink()
    made.write_bytes(broken)
    assert compiled(QUICK) == made and len(made.read_bytes()) == len(whole)
    assert NativeLibrary(made).scratch_bytes > 0


def test_two_processes_at_once_and_one_openmp(tmp_path: Path) -> None:
    program = PROGRAM.replace("FLAGS", repr(QUICK))
    started = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in started:
        output, errors = process.communicate(timeout=120)
        if b"NotCompiled" in errors:
            pytest.skip(errors.decode().splitlines()[-1])
        assert process.returncode == 0, errors.decode()
        assert output.decode().strip() == "1", "a second OpenMP has threads of its own"
    assert len(list((tmp_path / "cache" / "native").iterdir())) == 1


def test_it_brings_no_openmp(made: Path) -> None:
    assert not re.search(rb"lib(gomp|omp|iomp)[\w.-]*\.so", made.read_bytes())


def without_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PATH", str(folder))


def with_a_failing_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.mkdir()
    (folder / "cc").write_text("#!/bin/sh\n[ $1 = --version ] && exit 0\necho no room for it >&2\nexit 1\n")
    (folder / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def on_another_cpu(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.mkdir()
    (folder / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu sse2 avx\n")
    monkeypatch.setattr(compiling, "_CPUINFO", folder / "cpuinfo")


def without_a_cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.write_text("a file")
    monkeypatch.setenv("GRAPE_CACHE_DIR", str(folder))


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (without_compiler, "there is no C compiler (cc, gcc, clang) in PATH"),
        (with_a_failing_compiler, "cc: no room for it"),
        (on_another_cpu, "x86-64 with AVX2"),
        (without_a_cache, "Not a directory"),
    ],
)
def test_without_it(
    prepare: object, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(prepare)
    prepare(monkeypatch, tmp_path / "there")
    with caplog.at_level(logging.WARNING):
        assert library.native_library() is None and library.native_library() is None
    (record,) = caplog.records
    assert said in record.getMessage()
    described = library.described(CpuKernel.AUTO)
    assert said in described and described.startswith("torch, slower")


def test_it_is_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPE_CPU_KERNEL", "off")
    assert library.native_library() is None
    assert library.described(CpuKernel.OFF) == "torch, since GRAPE_CPU_KERNEL is off"
    assert not (tmp_path / "cache").exists()


def test_a_torch_without_this_openmp(made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(NotCompiled, match="libtorch_cpu"):
        NativeLibrary(made)
