"""Lint, format, types, import directions and sizes of the whole project."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_LINES = 400
# What the driver takes of SGLang: its engine, its settings, the entries of its processes, and how to end them.
DRIVER_TAKES = {
    "sglang",
    "sglang.srt.entrypoints.engine.Engine",
    "sglang.srt.managers.detokenizer_manager.run_detokenizer_process",
    "sglang.srt.managers.load_snapshot.shm_path_for",
    "sglang.srt.managers.scheduler.run_scheduler_process",
    "sglang.srt.platforms.current_platform",
    "sglang.srt.server_args.ServerArgs",
    "sglang.srt.utils.kill_process_tree",
    "sglang.srt.utils.server_args_config_parser.ConfigArgumentMerger",
}


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
        ["-m", "mypy", "grape_dsl", "sglang_ext"],
        ["-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
    ],
    ids=["ruff check", "ruff format", "mypy", "import directions"],
)
def test_quality(command):
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def imports(file: Path) -> Iterator[str]:
    """Full names of all that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_the_driver_takes_little_of_sglang():
    """The import contracts know SGLang as a whole only."""
    taken = {name for file in (ROOT / "sglang_ext" / "driver").rglob("*.py") for name in imports(file)}
    assert {name for name in taken if name.split(".")[0] == "sglang"} == DRIVER_TAKES


def test_no_file_is_long():
    sizes = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines())
        for package in ("grape_dsl", "sglang_ext")
        for file in (ROOT / package).rglob("*.py")
    }
    assert {name: lines for name, lines in sizes.items() if lines > MOST_LINES} == {}
