"""What the CPU platform sets where the user does not, on machines of several kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from sglang_ext.engine.cpu import defaults, platform
from sglang_ext.engine.cpu.machine import Machine
from sglang_ext.engine.cpu.model_size import stored_numbers
from sglang_ext.engine.cpu.pool_size import (
    GIB,
    PROCESSES,
    SHARE,
    WHOLE_CONTEXTS,
    ModelSize,
    NotEnoughMemory,
    pool_tokens,
)

SMALL = 40 << 20
MODEL = ModelSize(weights=GIB, token=1 << 16, context=4096)


def machine(free: int | None, cores: int = 4, quota: float | None = None) -> Machine:
    return Machine(cores, quota, free, "/sys/fs/cgroup/memory.max")


def test_a_pool_that_memory_bounds() -> None:
    free = 5 * GIB
    expected = (int(SHARE * (free - PROCESSES)) - MODEL.weights) // MODEL.token
    assert pool_tokens(machine(free), MODEL) == expected
    assert MODEL.context < expected < WHOLE_CONTEXTS * MODEL.context


@pytest.mark.parametrize("free", [None, 500 * GIB])
def test_a_pool_that_contexts_bound(free: int | None) -> None:
    assert pool_tokens(machine(free), MODEL) == WHOLE_CONTEXTS * MODEL.context


@pytest.mark.parametrize(
    ("free", "words"),
    [
        (PROCESSES + int(1.4 * GIB), ["3.4 GiB are free (/sys/fs/cgroup/memory.max)", "`--context-length 1792`"]),
        (GIB, ["1.0 GiB are free", "0.0 GiB of it for weights and KV", "GRAPE_CPU_PACKED_LINEAR=off"]),
    ],
)
def test_no_room_for_one_context(free: int, words: list[str]) -> None:
    with pytest.raises(NotEnoughMemory) as refused:
        pool_tokens(machine(free), MODEL)
    message = str(refused.value)
    assert all(word in message for word in [*words, "the weights take 1.0 GiB", "4096 tokens", "--max-total-tokens N"])
    assert ("--context-length" in message) == (free > PROCESSES)


@pytest.mark.parametrize(
    ("found", "ranks", "environ", "expected"),
    [
        (machine(None), 1, {}, 4),
        (machine(None, quota=2.5), 1, {}, 2),
        (machine(None), 2, {}, 2),
        (machine(None, cores=1), 2, {}, 1),
        (machine(None), 1, {"OMP_NUM_THREADS": "3"}, None),
    ],
)
def test_threads(found: Machine, ranks: int, environ: dict[str, str], expected: int | None) -> None:
    assert defaults.threads(found, ranks, environ) == expected


def test_each_default_is_described_with_its_reason() -> None:
    told = defaults.described(machine(12 * GIB, quota=1.5), {})
    assert told["threads"] == "1 (4 cores, a quota of 1.5 CPUs)"
    assert told["KV pool"].endswith("8.0 GiB for weights and KV, of 12.0 GiB free (/sys/fs/cgroup/memory.max)")
    told = defaults.described(machine(None), {"OMP_NUM_THREADS": "3"})
    assert told["threads"] == "3 (OMP_NUM_THREADS; 4 cores)"
    assert told["KV pool"].endswith("free memory is unknown")
    assert told["dtype"].startswith("bfloat16" if defaults.has_bf16() else "float32")


def test_numbers_of_a_model_on_disk(tmp_path: Path) -> None:
    assert stored_numbers(tmp_path) == 0
    save_file({"a": torch.zeros(3, 5), "b": torch.zeros(7, dtype=torch.bfloat16)}, tmp_path / "model-1.safetensors")
    save_file({"c": torch.zeros(2)}, tmp_path / "model-2.safetensors")
    save_file({"a": torch.zeros(3, 5)}, tmp_path / "consolidated.safetensors")
    assert stored_numbers(tmp_path) == 24
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-1.safetensors"}}')
    assert stored_numbers(tmp_path) == 22
    (tmp_path / "model-1.safetensors").write_bytes(b"no header")
    assert stored_numbers(tmp_path) == 0


class TestFlags:
    @pytest.fixture(autouse=True)
    def small_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(platform, "this_machine", lambda: machine(PROCESSES + SMALL))

    def resolved(self, model: Path, **given: Any) -> dict[str, Any]:
        from sglang.srt.arg_groups.overrides import resolution_result
        from sglang.srt.server_args import ServerArgs

        arguments = ServerArgs(model_path=str(model), **given)
        arguments.resolve_once()
        names = ("dtype", "max_total_tokens", "mem_fraction_static", "chunked_prefill_size", "max_running_requests")
        return {name: resolution_result(arguments, name) for name in names}

    def test_defaults(self, tiny_model: Path) -> None:
        found = self.resolved(tiny_model, context_length=2048, dtype="float32")
        numbers, token = stored_numbers(tiny_model), 4 * 2 * 2 * (16 + 16)
        expected = (int(SHARE * SMALL) - 2 * 4 * numbers) // token
        assert found == {
            "dtype": "float32",
            "max_total_tokens": expected,
            "mem_fraction_static": platform.MEMORY_FRACTION,
            "chunked_prefill_size": defaults.CHUNK,
            "max_running_requests": defaults.RUNNING_REQUESTS,
        }

    def test_what_the_user_gives_wins(self, tiny_model: Path) -> None:
        given = {"dtype": "float32", "max_total_tokens": 99, "chunked_prefill_size": 32, "max_running_requests": 7}
        assert self.resolved(tiny_model, **given) == given | {"mem_fraction_static": platform.MEMORY_FRACTION}
        found = self.resolved(tiny_model, mem_fraction_static=0.3)
        assert (found["mem_fraction_static"], found["max_total_tokens"]) == (0.3, None)
        assert found["dtype"] == ("bfloat16" if defaults.has_bf16() else "float32")

    def test_a_copy_less(self, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        one = self.resolved(tiny_model, context_length=2048, dtype="float32")["max_total_tokens"]
        monkeypatch.setenv("GRAPE_CPU_PACKED_LINEAR", "off")
        other = self.resolved(tiny_model, context_length=2048, dtype="float32")["max_total_tokens"]
        assert other > one

    def test_too_little(self, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(platform, "this_machine", lambda: machine(PROCESSES))
        with pytest.raises(NotEnoughMemory, match="4096 tokens"):
            self.resolved(tiny_model)
