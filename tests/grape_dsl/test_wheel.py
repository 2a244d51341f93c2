"""The wheel in a fresh environment, without the source tree and with nothing but its own dependencies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("grape_dsl", "sglang_ext", "grammar"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.tables"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, source, cwd=folder)
    shutil.rmtree(source)
    (wheel,) = folder.glob("grape_dsl-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    found = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(sys.executable, "-m", "pip", "--python", found, "install", "--quiet", wheel, cwd=folder)
    return found


def test_the_front_end_alone_compiles_an_example(python: Path, tmp_path: Path):
    shutil.copy(ROOT / "examples" / "search.flow", tmp_path)
    grape = python.with_name("grape")
    graph = json.loads(run(grape, "compile", "search.flow", "--format", "json", cwd=tmp_path).stdout)
    assert {node["kind"] for node in graph["nodes"]} == {
        "static_prefill",
        "dynamic_prefill",
        "suffix_prefill",
        "decode",
    }
    assert {edge["kind"] for edge in graph["edges"]} == {"strong", "partial"}
    assert "task rewriter writes query" in run(grape, "compile", "search.flow", cwd=tmp_path).stdout


def test_the_parse_tables_are_in_the_wheel(python: Path, tmp_path: Path):
    code = "import grape_dsl, os; print(*os.listdir(os.path.join(os.path.dirname(grape_dsl.__file__), 'grammar')))"
    assert {"flow.lark", "flow.tables"} <= set(run(python, "-c", code, cwd=tmp_path).stdout.split())


def test_a_twin_runs(python: Path, tmp_path: Path):
    shutil.copy(ROOT / "examples" / "search.py", tmp_path)
    code = "import grape_dsl, search; print(grape_dsl.compile(search.search).graph.tasks())"
    assert "'rewriter'" in run(python, "-c", code, cwd=tmp_path).stdout


def test_commands_of_the_runtime_say_what_to_install(python: Path, tmp_path: Path):
    done = subprocess.run(
        [python.with_name("grape"), "run", "search.flow"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert 'pip install "grape-dsl[sglang]"' in done.stderr
    assert "Traceback" not in done.stderr
    listed = run(python.with_name("grape"), "--help", cwd=tmp_path).stdout
    assert "run " in listed
