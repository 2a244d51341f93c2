"""`grape profile`, without an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("sglang", reason="the profile needs the extra `sglang`")

from sglang_ext.bench.step_cost import profile_run
from sglang_ext.commands.profile import profile as command
from sglang_ext.policy.cost_model import Load
from sglang_ext.profile import store
from sglang_ext.profile.profile import Profile
from tests.sglang_ext.profile.profiles import COST, KEY, profile


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "profiles"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[profile_run.ProfileRun]:
    """Measurements that were asked for; each gives the same profile at once."""
    asked: list[profile_run.ProfileRun] = []

    def measured(self: profile_run.ProfileRun, progress: Any) -> Profile:
        asked.append(self)
        return profile()

    monkeypatch.setattr(profile_run.ProfileRun, "run", measured)
    return asked


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)))


def steps(file: Path, key: dict[str, Any] | None = None) -> Path:
    """A recorded run, each step 10% longer than the profile says; a pause after the third."""
    clock, lines = 10.0, [{"threads": 2, "lag": 0, **({} if key is None else {"key": key})}]
    for i in range(8):
        load = Load(2, 0, 100).plus(0, 8 if i % 2 else 0)
        if i == 3:
            clock += 5.0
        line = {"launch": clock, "decodes": 2, "chunks": [[0, 8]] if i % 2 else [], "kv": 100}
        lines.append(line | ({"idle": True} if i == 3 else {}))
        clock += 1.1 * COST.time(load)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_profile_is_measured_kept_and_shown(runs: list[profile_run.ProfileRun], cache: Path, tmp_path: Path) -> None:
    done = invoke("--model", "m", "--plot", tmp_path / "p.svg", "--", "--chunked-prefill-size", "256")
    assert done.exit_code == 0, done.output
    assert store.read(store.file_of(KEY)) == profile() and store.file_of(KEY).parent == cache
    assert f"profile: {store.file_of(KEY)}" in done.stderr
    assert "5 steps of 3 make-ups in 60 s" in done.stdout and "0.9 ms" in done.stdout and "4.0%" in done.stdout
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    (run,) = runs
    assert run.seconds == 240 and run.setup.model == "m"
    assert "--chunked-prefill-size" in run.setup.launch(profile_run.KIND).flags
    assert run.setup.launch(profile_run.KIND).environment["GRAPE_PROFILE"] == "off"


def test_output_takes_the_place_of_the_cache(runs: list[profile_run.ProfileRun], cache: Path, tmp_path: Path) -> None:
    done = invoke("--quick", "--model", "m", "--output", tmp_path / "mine.json", "--json")
    assert done.exit_code == 0, done.output
    assert Profile.model_validate_json(done.stdout) == store.read(tmp_path / "mine.json") == profile()
    assert not cache.exists() and runs[0].seconds == 60
    shown = invoke("--read", tmp_path / "mine.json")
    assert shown.exit_code == 0 and "5 steps of 3 make-ups" in shown.stdout


def test_a_recorded_run_is_checked(tmp_path: Path) -> None:
    store.save(profile(), store.file_of(KEY))
    file = steps(tmp_path / "a.steps", KEY.model_dump(mode="json"))
    done = invoke("--check", file, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    # The last step has no end, and the third one was followed by a pause.
    assert found["left_out"] == 1 and found["errors"]["as fitted"]["all"]["steps"] == 6
    assert found["errors"]["as fitted"]["mixed"]["mean"] == pytest.approx(1 - 1 / 1.1, abs=1e-4)
    shown = invoke("--check", file)
    assert "mixed" in shown.stdout and "-9.1%" in shown.stdout


def test_the_profile_of_a_check_is_named_or_found(tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    store.save(profile(threads=9), own)
    unknown = steps(tmp_path / "old.steps")
    assert invoke("--check", unknown, "--read", own).exit_code == 0
    done = invoke("--check", unknown)
    assert done.exit_code == 2 and "does not say which engine it is of; name a profile with --read" in done.stderr
    done = invoke("--check", steps(tmp_path / "a.steps", KEY.model_dump(mode="json")))
    assert done.exit_code == 2 and "no profile for the steps in" in done.stderr and "there is none in" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--read", "FILE", "--quick"], "measure nothing"),
        (["--check", "FILE", "--output", "x"], "measure nothing"),
        (["--check", "FILE", "--plot", "x"], "--plot draws a profile"),
        (["--read", "FILE"], "is no profile that `grape profile` wrote"),
        (["--check", "FILE"], "holds no steps of an engine"),
        (["--read", "absent"], "does not exist"),
        (["dtype"], "unexpected argument 'dtype'"),
        (["--model", "m", "--", "--disable-radix-cache"], "--disable-radix-cache is set by the benchmark"),
        (["--model", "m", "--output", "FILE/below/p.json"], "cannot write the profile to"),
    ],
)
def test_usage(arguments: list[str], said: str, tmp_path: Path, runs: list[profile_run.ProfileRun]) -> None:
    (tmp_path / "f").write_text("{}\n[1\n")
    done = invoke(*(each.replace("FILE", str(tmp_path / "f")) for each in arguments))
    assert done.exit_code == 2, done.output
    assert said in done.output and "Traceback" not in done.output
