"""The CPU platform without one or all of its faster paths gives the ids that it gives with them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.engine import model_alone
from tests.engine.test_models import check

TOKENS = 12
LENGTHS = (1, 5, 70)
OFF = {f"GRAPE_CPU_{path}": "off" for path in ("PACKED_LINEAR", "STACK", "FUSED_OPS", "KERNEL")}
# A CPU with AVX2 at most, for oneDNN and for torch's own kernels: no bfloat16 in hardware, no AVX-512.
OLD_CPU = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
FAST = {
    "attention": "GrapeAttentionBackend",
    "kernel": "CompiledAttention" if shutil.which("cc") else "TorchAttention",
    "packed": 9,
    "stack": True,
    "fused": True,
}
MODES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "none": ({}, {}),
    "stack": ({"GRAPE_CPU_STACK": "off"}, {"stack": False}),
    "packing": ({"GRAPE_CPU_PACKED_LINEAR": "off"}, {"packed": 0}),
    "kernel": ({"GRAPE_CPU_KERNEL": "off"}, {"kernel": "TorchAttention"}),
    "attention": ({"ATTENTION": "torch_native"}, {"attention": "TorchNativeAttnBackend", "kernel": "NoneType"}),
}


@pytest.fixture(scope="module")
def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randint(100, 40000, (length,), generator=generator).tolist() for length in LENGTHS]


def reference(model: Path, prompts: list[list[int]], outputs: list[list[int]]) -> None:
    loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    check(loaded, prompts, outputs)


@pytest.mark.slow
def test_an_old_cpu_with_every_path_off(tiny_model: Path, prompts: list[list[int]]) -> None:
    found = model_alone.run(tiny_model, prompts, TOKENS, {"all": {}}, OLD_CPU | OFF)["all"]
    ids = found.pop("ids")
    slow = {"kernel": "TorchAttention", "packed": 0, "stack": False, "fused": False, "bf16": False, "isa": "AVX2"}
    assert found == {"attention": "GrapeAttentionBackend", **slow}
    reference(tiny_model, prompts, ids)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("environment", [{}, OLD_CPU], ids=["this-cpu", "old-cpu"])
def test_each_path_off(environment: dict[str, str], tiny_model: Path, prompts: list[list[int]]) -> None:
    modes = {name: variables for name, (variables, _) in MODES.items()}
    found = model_alone.run(tiny_model, prompts, TOKENS, modes, environment)
    first = found["none"]["ids"]
    reference(tiny_model, prompts, first)
    for name, (_, changed) in MODES.items():
        expected = FAST | changed
        assert {fact: found[name][fact] for fact in expected} == expected, name
        assert found[name]["ids"] == first, name
