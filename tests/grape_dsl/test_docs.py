"""The Python code in the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from grape_dsl.compiler import compile
from grape_dsl.printing.text_form import to_text
from grape_dsl.syntax import load

ROOT = Path(__file__).parents[2]


def test_python_page(capsys):
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert capsys.readouterr().out == "['think', 'speak']\n"
    assert [d.code for d in compile(names["search"]).diagnostics] == ["unused-variable"]
    assert compile(names["polish"]).graph.tasks() == ["round_0", "round_1", "round_2"]


def test_graph_page_shows_what_is_printed():
    page = (ROOT / "docs" / "graph.md").read_text(encoding="utf-8")
    printed = to_text(compile(load(ROOT / "examples" / "search.flow").workflow).graph)
    for line in re.findall(r"^      (generator/.*)$", page, re.MULTILINE):
        assert line.removesuffix("...") in printed


def test_python_page_lists_the_codes_of_the_decorators():
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("python.md", "language.md"))
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "grape_dsl" / "decorators").glob("*.py"))
    codes = set(re.findall(r'refuse(?:d)?\(\s*"([a-z-]+)"', source))
    assert {"symbol-use", "no-prompt"} <= codes
    assert [code for code in sorted(codes) if f"`{code}`" not in pages] == []
