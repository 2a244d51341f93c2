"""The documentation names what is there."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from sglang_ext.settings import EngineSettings

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    named = set(
        re.findall(r"`((?:grape_dsl|sglang_ext|grammar|tests|examples|docs)/[\w/.]+)`", page.read_text("utf-8"))
    )
    assert [n for n in sorted(named) if not (ROOT / n).exists() and not (ROOT / f"{n}.py").exists()] == []


def test_the_way_of_a_task_names_modules_of_each_folder():
    named = re.findall(r"^\| `((?:grape_dsl|sglang_ext)/[\w/]+)` \|", read("docs/architecture.md"), re.MULTILINE)
    assert len(named) == len(set(named))
    folders = {str(Path(name).parent) for name in named}
    assert {"grape_dsl/syntax", "grape_dsl/lowering", "sglang_ext/driver", "sglang_ext/engine"} <= folders


def test_settings_are_documented_with_their_defaults():
    rows = dict(re.findall(r"^\| `(GRAPE_\w+)` \| `?([\w.]+)`? \|", read("docs/running.md"), re.MULTILINE))
    shown = {
        s.name: f"{s.default:g}" if isinstance(s.default, float) else str(s.default) for s in fields(EngineSettings)
    }
    assert rows == {f"GRAPE_{name.upper()}": default or "none" for name, default in shown.items()}


def test_pages_that_the_code_names_exist():
    sources = [file for package in ("grape_dsl", "sglang_ext") for file in (ROOT / package).rglob("*.py")]
    named = {page for file in sources for page in re.findall(r"\bdocs/[\w.-]+\.\w+", file.read_text("utf-8"))}
    assert named and [page for page in sorted(named) if not (ROOT / page).exists()] == []
