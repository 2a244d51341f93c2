"""The file of a profile: what is written is read again, and nothing else is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sglang_ext.bench.simulation.rooflines import machine, measured
from sglang_ext.policy.cost_model import Load
from sglang_ext.profile import store
from sglang_ext.profile.profile import KIND
from sglang_ext.profile.store import ProfileError
from tests.sglang_ext.profile.profiles import COST, profile


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "p.json"
    store.save(profile(), file)
    assert store.read(file) == profile()
    assert json.loads(file.read_text())["kind"] == KIND
    assert store.read(file).error == 0.04
    assert oct(file.stat().st_mode & 0o777) == "0o644"


def test_a_measurement_has_its_load() -> None:
    alone, mixed, prefill = (each.load for each in profile().measurements)
    assert (alone, alone.regime) == (Load(2, 0, 200), "decode")
    assert (mixed, mixed.regime) == (Load(2, 16, 274, 16 * 72, 1), "mixed")
    assert (prefill.tokens, prefill.kv, prefill.attention) == (105, 10, 100 * 50 + 5 * 12.5)


def test_a_writer_that_dies_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.json"
    store.save(profile(), file)

    def full(handle: int) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        store.save(profile(threads=7), file)
    assert store.read(file) == profile()
    assert [each.name for each in tmp_path.iterdir()] == ["p.json"]


def test_the_file_is_never_seen_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.json"
    store.save(profile(), file)
    seen = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(store.read(file)), sync(handle)))
    store.save(profile(threads=7), file)
    assert seen == [profile()], "the old one until the new one is whole"
    assert store.read(file) == profile(threads=7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "grape.profile/2"}, "kind: Input should be 'grape.profile/1'"),
        ({"cost": {"fixed": -1.0}}, "cost: Value error, cost model: fixed is -1.0; it takes a number of at least 0"),
        ({"cost": {"fixed": 0.1, "colour": 1}}, "cost: Value error.*colour"),
        ({"measurements": [{"setting": 0}]}, "measurements.0.visit: Field required"),
        ({"more": 1}, "more: Extra inputs"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(profile().model_dump(mode="json") | change))
    with pytest.raises(ProfileError, match=f"{file} is no profile that `grape profile` wrote: {said}"):
        store.read(file)


def test_files_that_are_not_json_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"cannot read the profile .*absent\.json: No such file"):
        store.read(tmp_path / "absent.json")
    (tmp_path / "p.json").write_text('{"kind": ')
    with pytest.raises(ProfileError, match=r"p\.json is no profile.*Invalid JSON"):
        store.read(tmp_path / "p.json")


def test_the_simulator_reads_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    store.save(profile(), file)
    found = measured(file, machine("h200-8b"))
    assert found.cost == COST
    assert (found.kv_tokens, found.chunk, found.running, found.overlap) == (4096, 512, 64, "host")
