"""The README's two lines, `.ci/run`, which runs the second, and the README's workflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from grape_dsl.compiler import compile
from grape_dsl.printing.text_form import to_text
from grape_dsl.syntax import load, parse_text

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NEEDS_BASH = pytest.mark.skipif(
    sys.platform == "win32" or not shutil.which("git") or not shutil.which("bash"), reason="needs bash and git"
)


def marked(name: str) -> str:
    """The block behind the marker `name`."""
    (block,) = re.findall(rf"^<!-- {name} line[^\n]*-->\n```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return block


@pytest.mark.parametrize("name", ["run", "test"])
def test_a_line_makes_its_own_environment(name):
    line = marked(name)
    assert line.count("\n") == 1
    make, upgrade, install, *_ = line.strip().split(" && ")
    assert make == "python3.11 -m venv .venv"
    assert upgrade == ".venv/bin/python -m pip install --upgrade pip"
    assert install.startswith(".venv/bin/python -m pip install -e ")


def test_the_run_line_asks_the_example_its_own_question():
    *_, install, run = marked("run").strip().split(" && ")
    assert install.endswith('".[sglang]"')
    question = json.loads((ROOT / "examples" / "search.json").read_text(encoding="utf-8"))["question"]
    assert run == f'.venv/bin/grape run examples/search.flow --progress --input question="{question}"'


def test_the_test_line_runs_all_tests_but_slow_ones():
    *_, install, run = marked("test").strip().split(" && ")
    assert install.endswith('".[sglang,test]"')
    assert run == ".venv/bin/python -m pytest"


def test_the_workflow_is_the_same_in_both_forms():
    (flow,) = re.findall(r"^```\n(workflow .*?)^```$", README, re.DOTALL | re.MULTILINE)
    (python,) = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    loaded = parse_text(flow)
    assert loaded.diagnostics == ()
    names: dict[str, Any] = {}
    exec(python, names)
    assert compile(names["review"]).graph == compile(loaded.workflow).graph


def test_compile_prints_what_is_shown():
    (shown,) = re.findall(r"^\$ grape compile examples/search.flow\n(.*?)\n\.\.\.$", README, re.DOTALL | re.MULTILINE)
    printed = to_text(compile(load(ROOT / "examples" / "search.flow").workflow).graph).splitlines()
    for line, whole in zip(shown.splitlines(), printed, strict=False):
        assert whole.startswith(line.removesuffix("...")), line


def checkout(folder: Path, line: str) -> Path:
    """A repository with this `.ci/run` and a README whose test line is `line`."""
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    (folder / "README.md").write_text(README.replace(marked("test"), f"{line}\n"), encoding="utf-8")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder / ".ci" / "run"


@NEEDS_BASH
@pytest.mark.parametrize("code", [0, 1, 7])
def test_ci_runs_that_line_in_a_clone(tmp_path, code):
    script = checkout(tmp_path / "checkout", f'git status --short && pwd && cat && echo "$CI" && exit {code}')
    (tmp_path / "checkout" / "untracked").touch()
    (tmp_path / "tmp").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "CI": "true"}
    done = subprocess.run([script], cwd="/", env=environment, input="typed", capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    shown, folder, ci = done.stdout.splitlines()
    assert shown.startswith("+ git status")
    assert Path(folder).is_relative_to(tmp_path / "tmp")
    assert ci == "true"
    assert list((tmp_path / "tmp").iterdir()) == []


@NEEDS_BASH
def test_ci_ended_from_outside_leaves_nothing(tmp_path):
    script = checkout(tmp_path / "checkout", f"touch {tmp_path}/begun; sleep 60; touch {tmp_path}/survived")
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen([script], env=os.environ | {"TMPDIR": str(tmp_path / "tmp")})
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=45) == 143
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "survived").exists()


@NEEDS_BASH
def test_ci_says_when_the_line_is_missing(tmp_path):
    script = checkout(tmp_path / "checkout", "true\ntrue")
    done = subprocess.run([script], capture_output=True, text=True)
    assert done.returncode == 2
    assert "one line in the fenced block" in done.stderr
