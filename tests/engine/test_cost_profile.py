"""The profile that an engine starts from: what it belongs to, which one is taken, and that all ranks take it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sglang_ext.bench.step_log import StepLog
from sglang_ext.bench.step_recorder import StepRecorder, first_line, kv_read
from sglang_ext.engine.cost_profile import described, key_of, pick, step_times
from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.edge_weight import EdgeWeights
from sglang_ext.policy.snapshot import Decode, Snapshot
from sglang_ext.profile import store
from sglang_ext.profile.profile import Profile
from sglang_ext.settings import SettingsError
from tests.engine.server import serve
from tests.engine.test_bench_engine import ForwardMode
from tests.sglang_ext.profile.profiles import profile

ROOT = Path(__file__).parents[2]


class Group:
    """A rank's view of its group; the lead rank's object comes to all."""

    def __init__(self, rank: int, size: int = 1, sent: list[Any] | None = None) -> None:
        self.rank_in_group, self.world_size = rank, size
        self.sent: list[Any] = [] if sent is None else sent

    def broadcast_object(self, obj: Any, src: int) -> Any:
        if self.rank_in_group == src:
            self.sent.append(obj)
        return self.sent[-1]


def scheduler(
    group: Group | None = None, *, quantization: str | None = None, kv: str = "bfloat16", overlap: bool = True
) -> Any:
    config = SimpleNamespace(
        architectures=["LlamaForCausalLM"],
        num_hidden_layers=2,
        hidden_size=64,
        intermediate_size=128,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=1000,
    )
    group = group or Group(0)
    return SimpleNamespace(
        model_config=SimpleNamespace(
            model_path="/models/a-model/",
            dtype=torch.bfloat16,
            quantization=quantization,
            hf_config=config,
            hf_text_config=config,
        ),
        tp_worker=SimpleNamespace(
            model_runner=SimpleNamespace(
                prefill_attention_backend_str="grape_cpu",
                decode_attention_backend_str="grape_cpu",
                kv_cache_dtype=getattr(torch, kv),
            )
        ),
        device="cpu",
        enable_overlap=overlap,
        tp_size=group.world_size,
        tp_group=group,
    )


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("sglang_ext.engine.cost_profile.native_library", lambda: "compiled")
    return tmp_path


def fitting(made: Any, **values: Any) -> Profile:
    return profile(**key_of(made).model_dump(), **values)


def test_the_key_says_what_changes_a_steps_work(monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(scheduler())
    assert (key.model, key.shape) == ("a-model", "LlamaForCausalLM 2 64 128 4 2 1000")
    assert (key.dtype, key.device, key.ranks, key.options) == ("bfloat16", "cpu", 1, ())
    assert key.threads == torch.get_num_threads() and key.torch == torch.__version__ and key.processor
    assert key.attention == "grape_cpu"
    changed = key_of(scheduler(quantization="fp8", kv="float8_e5m2", overlap=False))
    assert changed.options == ("quantization fp8", "KV float8_e5m2", "no overlap")
    monkeypatch.setenv("GRAPE_CPU_STACK", "off")
    assert key_of(scheduler()).options == ("cpu_stack off",)
    monkeypatch.setattr("sglang_ext.engine.cost_profile.native_library", lambda: None)
    assert key_of(scheduler()).options == ("cpu_stack off", "attention not compiled")


def test_auto_starts_from_what_fits_and_says_so() -> None:
    made = scheduler()
    assert "there is none in" in described(pick(made, "auto"))["reason"]
    found = fitting(made)
    store.save(found, store.file_of(found.key))
    choice = pick(made, "auto")
    assert described(choice) == {"file": str(store.file_of(found.key)), "errors": {"all": 0.04, "mixed": 0.05}}
    assert step_times(choice).model == found.cost
    assert pick(scheduler(quantization="fp8"), "auto").profile is None
    off = pick(made, "off")
    assert described(off) == {"file": None, "reason": "GRAPE_PROFILE=off"}


def test_without_one_the_costs_are_learned() -> None:
    times = step_times(pick(scheduler(), "auto"))
    start = times.model
    for _ in range(32):
        times.observe(store_load(), 0.5)
    assert times.model is not start


def store_load() -> Any:
    return profile().measurements[0].load


def test_the_edge_weight_follows_the_profile(tmp_path: Path) -> None:
    """Where a piece costs ten tokens' worth, larger ones are taken than where it costs nothing."""
    made, chosen = scheduler(), []
    for piece in (0.0, 0.009):
        cost = profile().cost
        file = tmp_path / f"{piece}.json"
        store.save(fitting(made, cost=type(cost)(fixed=0.03, token=0.0009, piece=piece)), file)
        weights = EdgeWeights(Configuration(piece_s=0.0), step_times(pick(made, str(file))))
        decodes = (Decode("a", "a", 100),)
        snapshot = Snapshot(0.0, (), decodes, (), 1000, 8, 8, 512)
        chosen.append(weights.at(snapshot, store_load()))
    assert chosen[0] < chosen[1]


def test_a_file_that_does_not_fit_ends_the_start_by_the_name_of_what_differs(tmp_path: Path) -> None:
    made = scheduler()
    store.save(
        fitting(made).model_copy(update={"key": key_of(made).model_copy(update={"threads": 99})}), tmp_path / "p"
    )
    with pytest.raises(SettingsError, match=r"GRAPE_PROFILE='.*p': the profile .* threads is 99 in the profile and"):
        pick(made, str(tmp_path / "p"))


def test_all_ranks_take_the_lead_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sent: list[Any] = []
    lead, other = (scheduler(Group(rank, 2, sent)) for rank in (0, 1))
    found = fitting(lead)
    store.save(found, store.file_of(found.key))
    first = pick(lead, "auto")
    monkeypatch.setenv("GRAPE_CACHE_DIR", str(tmp_path / "another machine's"))
    assert pick(other, "auto") == first and first.profile == found
    with pytest.raises(SettingsError, match="cannot read the profile absent"):
        pick(lead, "absent")
    with pytest.raises(SettingsError, match="cannot read the profile absent"):
        pick(other, "absent")


def recorded(made: Any) -> Any:
    """With what the recorder asks a scheduler for."""
    made.forward_ct, made.max_total_num_tokens = 0, 1000
    made.running_batch = SimpleNamespace(reqs=[])
    made.token_to_kv_pool_allocator = SimpleNamespace(available_size=lambda: 1000)
    made.tree_cache = SimpleNamespace(evictable_size=lambda: 0)
    made.get_next_batch_to_run = made.process_batch_result = None
    return made


def test_the_recorder_tells_pauses_contexts_and_the_engine(tmp_path: Path) -> None:
    made, file = recorded(scheduler()), tmp_path / "steps"
    recorder = StepRecorder(file, SimpleNamespace(step=lambda launch, decodes: None))  # type: ignore[arg-type]
    run = recorder.around(lambda scheduler, batch: batch)
    idle = recorder.idle_before(lambda scheduler: None)
    rows = [SimpleNamespace(origin_input_ids=[0] * 7, output_ids=[0] * 3) for _ in range(2)]
    decode = SimpleNamespace(forward_mode=ForwardMode.DECODE, reqs=rows, decoding_reqs=None)
    chunk = {"prefix_lens": [512, 9, 9], "extend_lens": [16, 1, 1]}
    mixed = SimpleNamespace(forward_mode=ForwardMode.MIXED, reqs=[object(), *rows], decoding_reqs=rows, **chunk)
    assert kv_read(decode, []) == 20 and kv_read(mixed, [(512, 16)]) == 532
    for batch in (mixed, decode):
        assert run(made, batch) is batch
    idle(made)
    run(made, decode)
    run(recorded(scheduler(Group(1, 2))), decode)
    run(made, decode)
    log = StepLog(file)
    steps = log.steps()
    assert [(s.decodes, s.chunks, s.kv, s.paused) for s in steps] == [
        (2, ((512, 16),), 532, False),
        (2, (), 20, True),
        (2, (), 20, False),
    ]
    assert log.key == key_of(made).model_dump(mode="json") and log.lag == 0
    assert steps[0].load.pieces == 1 and steps[0].load.kv == 532 and steps[0].context == 20
    made.device = "cuda"
    assert made.enable_overlap
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sglang_ext.bench.step_recorder.key_of", lambda scheduler: profile().key)
        assert first_line(made)["lag"] == 1


@pytest.mark.slow
def test_a_quick_profile_is_found_by_the_next_engine(tiny_model: Path, tmp_path: Path) -> None:
    code = "from sglang_ext.commands.profile import profile; profile()"
    command = [sys.executable, "-c", code, "--quick", "--model", str(tiny_model), "--", "--dtype", "float32"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GRAPE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "profiles").iterdir()
    found = store.read(file)
    assert found.length_s < 70 and found.key.model == tiny_model.name and found.key.threads == 1
    assert {each.load.regime for each in found.measurements} == {"decode", "mixed", "prefill"}
    assert found.noise and found.error is not None and found.cost.fixed > 0
    with serve(tiny_model, tmp_path / "auto", environment={"GRAPE_CACHE_DIR": str(tmp_path)}) as server:
        state = server.state()["grape"]
        assert state["profile"] == {"file": str(file), "errors": found.cost.errors}
        assert state["key"] == found.key.model_dump(mode="json")
    wrong = tmp_path / "wrong.json"
    store.save(found.model_copy(update={"key": found.key.model_copy(update={"threads": 7})}), wrong)
    with (
        pytest.raises(RuntimeError, match="threads is 7 in the profile and 1 in the engine"),
        serve(tiny_model, tmp_path / "wrong", environment={"GRAPE_PROFILE": str(wrong)}),
    ):
        pass
