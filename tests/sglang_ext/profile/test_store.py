"""Which profile an engine takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sglang_ext.profile import store
from sglang_ext.profile.engine_key import EngineKey
from sglang_ext.profile.profile import Profile
from sglang_ext.profile.store import AUTO, ProfileError, choose
from tests.sglang_ext.profile.profiles import KEY, profile


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPE_CACHE_DIR", str(tmp_path))
    return tmp_path / "profiles"


def kept(found: Profile, name: str, age_s: int = 0) -> Path:
    file = store.folder() / name
    store.save(found, file)
    os.utime(file, (1_000_000 - age_s, 1_000_000 - age_s))
    return file


def test_auto_takes_the_newest_that_fits() -> None:
    kept(profile(length_s=1.0), "old.json", age_s=10)
    newest = kept(profile(length_s=2.0), "new.json")
    kept(profile(threads=4), "other.json", age_s=-10)
    (store.folder() / "broken.json").write_text("{")
    choice = choose(AUTO, KEY)
    assert (choice.file, choice.reason) == (newest, "")
    assert choice.profile is not None and choice.profile.length_s == 2.0


def test_auto_without_a_fitting_one_says_why(cache: Path) -> None:
    assert choose(AUTO, KEY).reason == f"there is none in {cache}; `grape profile` measures one"
    kept(profile(threads=4, torch="2.0"), "far.json")
    kept(profile(threads=4), "near.json", age_s=10)
    choice = choose(AUTO, KEY)
    assert choice.profile is None and choice.file is None
    assert choice.reason == (
        f"none in {cache} fits; the nearest: threads is 4 in the profile and 2 in the engine; "
        "`grape profile` measures one"
    )


def test_a_path_is_taken_before_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(profile(), "fits.json")
    named = tmp_path / "named.json"
    store.save(profile(length_s=9.0), named)
    choice = choose(str(named), KEY)
    assert choice.file == named and choice.profile is not None and choice.profile.length_s == 9.0
    monkeypatch.chdir(tmp_path)
    assert choose("named.json", KEY).file == named


@pytest.mark.parametrize("name", list(EngineKey.model_fields))
def test_a_path_that_does_not_fit_is_refused_by_the_name_of_what_differs(tmp_path: Path, name: str) -> None:
    other = {"threads": 3, "ranks": 2, "options": ("cpu_stack off",)}.get(name, "another")
    file = tmp_path / "p.json"
    store.save(profile(**{name: other}), file)
    with pytest.raises(ProfileError, match=rf"p\.json belongs to another engine: {name} is .* in the profile and .*"):
        choose(str(file), KEY)


def test_all_that_differs_is_named(tmp_path: Path) -> None:
    store.save(profile(dtype="float32", options=("KV fp8", "no overlap")), tmp_path / "p.json")
    with pytest.raises(ProfileError) as caught:
        choose(str(tmp_path / "p.json"), KEY)
    assert "dtype is float32 in the profile and bfloat16 in the engine; " in str(caught.value)
    assert "options is KV fp8, no overlap in the profile and none in the engine. Measure" in str(caught.value)
    with pytest.raises(ProfileError, match=r"cannot read the profile absent\.json"):
        choose("absent.json", KEY)


def test_each_engine_has_a_file_of_its_own(cache: Path) -> None:
    file = store.file_of(KEY)
    assert file.parent == cache and file.name.startswith("a-model-bfloat16-cpu-2-threads-")
    others = {store.file_of(KEY.model_copy(update={"processor": f"CPU {i}/{i}"})) for i in range(9)}
    assert len(others) == 9 and file not in others
    assert all(each.parent == cache for each in others)
