"""What importing and compiling loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import grape_dsl

ROOT = Path(__file__).parents[2]
NEVER = ("torch", "sglang", "transformers", "sglang_ext")
NOT_FOR_COMPILING = (*NEVER, "typer", "rich", "tokenizers", "jinja2", "numpy", "pydantic.main")


def loaded(code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after `code`."""
    report = "import sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    program = f"import atexit\natexit.register(lambda: exec({report!r}))\n{code}"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_import_loads_next_to_nothing():
    modules = loaded("import grape_dsl")
    assert not modules & {*NOT_FOR_COMPILING, "lark", "networkx", "pydantic", "click"}


@pytest.mark.parametrize("extra", [[], ["--stats"], ["--format", "mermaid"], ["--format", "dot"]])
def test_compile_loads_no_heavy_package(extra):
    arguments = ["compile", "examples/search.flow", *extra]
    modules = loaded(f"from grape_dsl.cli import main\nmain({arguments!r})")
    assert "networkx" in modules
    assert not modules & set(NOT_FOR_COMPILING)


def test_json_loads_no_runtime():
    modules = loaded("from grape_dsl.cli import main\nmain(['compile', 'examples/search.flow', '--format', 'json'])")
    assert not modules & set(NEVER)


def test_help_loads_no_runtime():
    assert not loaded("from grape_dsl.cli import main\nmain(['compile', '--help'])") & set(NEVER)


def test_public_names():
    for name in grape_dsl.__all__:
        assert getattr(grape_dsl, name) is not None
    assert set(dir(grape_dsl)) == set(grape_dsl.__all__)
    assert grape_dsl.compile is __import__("grape_dsl.compiler", fromlist=["compile"]).compile
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        grape_dsl.nothing  # noqa: B018
