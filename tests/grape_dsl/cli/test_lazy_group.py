"""Commands of other packages: found through entry points, loaded when they are called or listed."""

from __future__ import annotations

import sys
import textwrap
from importlib.metadata import distributions
from pathlib import Path

import pytest

from grape_dsl.cli import INTERRUPTED, ExitCode, lazy_group, main, missing_extra

MODULE = '''
from typing import Annotated

import click
import typer


def greet(name: str, flags: Annotated[list[str] | None, typer.Argument()] = None, loud: bool = False) -> None:
    """Greet somebody."""
    print("HELLO" if loud else "hello", name, flags)
    raise typer.Exit(3)


@click.command()
@click.argument("size", type=int)
def measure(size: int) -> None:
    """Measure something."""
    print("size", size)


@click.command()
@click.option("--quick", is_flag=True)
@click.option("--load", multiple=True)
def whole(quick: bool, load: tuple[str, ...]) -> None:
    """Measure everything."""
    print("whole", quick, load)


@click.command()
def interrupted() -> None:
    raise KeyboardInterrupt


app = typer.Typer(help="Keep things.")


@app.command()
def put() -> None:
    print("put")


@app.command()
def get() -> None:
    print("got")
'''
ENTRY_POINTS = """
[grape.commands]
greet = extra_commands:greet
keep = extra_commands:app
interrupted = extra_commands:interrupted
bench.size = extra_commands:measure
bench.workflows = extra_commands:whole
bench.lost = extra_commands_lost:run
bench.wrong = extra_commands_wrong:run
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with commands; one of them needs a package of the runtime that is missing."""
    pytest.importorskip("typer")
    (tmp_path / "extra_commands.py").write_text(MODULE, encoding="utf-8")
    lost = "raise ModuleNotFoundError(\"No module named 'sglang.srt'\", name='sglang.srt')\n"
    (tmp_path / "extra_commands_lost.py").write_text(lost, encoding="utf-8")
    info = tmp_path / "extra_commands-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-commands\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (found,) = distributions(path=[str(tmp_path)])
    monkeypatch.setattr(lazy_group, "entry_points", found.entry_points.select)  # its own commands only
    yield
    for module in ("extra_commands", "extra_commands_lost"):
        sys.modules.pop(module, None)


def grape(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code or 0


def test_a_function_with_typer_parameters(installed, capsys):
    assert grape("greet", "Ann", "--loud", "--", "--flag", "1") == 3
    assert capsys.readouterr().out == "HELLO Ann ['--flag', '1']\n"
    assert grape("greet") == 2
    assert "Usage: grape greet" in capsys.readouterr().err
    assert grape("greet", "--help") == 0
    assert "Greet somebody." in capsys.readouterr().out


def test_a_typer_app(installed, capsys):
    assert grape("keep", "put") == 0
    assert capsys.readouterr().out == "put\n"


def test_a_click_command_in_a_group(installed, capsys):
    assert grape("bench", "size", "7") == 0
    assert capsys.readouterr().out == "size 7\n"


def test_options_alone_mean_the_whole_benchmark(installed, capsys):
    assert grape("bench", "--quick", "--load", "2") == 0
    assert capsys.readouterr().out == "whole True ('2',)\n"
    assert grape("bench", "--hurry") == 2
    assert "No such option" in capsys.readouterr().err
    assert grape("bench") == 2
    assert "Measure everything." in capsys.readouterr().err


def test_ctrl_c(installed):
    assert grape("interrupted") == INTERRUPTED == 130


def test_they_are_listed(installed, capsys):
    assert grape("--help") == 0
    shown = capsys.readouterr().out
    assert "Greet somebody." in shown
    assert "Keep things." in shown
    assert "size" not in shown
    assert grape("bench", "--help") == 0
    shown = capsys.readouterr().out
    assert "Measure something." in shown
    assert 'Needs: pip install "grape-dsl[sglang]"' in shown
    assert "Cannot be loaded: No module named 'extra_commands_wrong'" in shown


def test_a_missing_package_says_what_to_install(installed, capsys):
    assert grape("bench", "lost", "anything", "--at", "all") == ExitCode.ENGINE
    error = capsys.readouterr().err
    assert "'sglang.srt'" in error
    assert 'pip install "grape-dsl[sglang]"' in error


def test_built_in_commands_load_nothing_of_them(installed, capsys):
    assert grape("compile", "--help") == 0
    assert "extra_commands" not in sys.modules


def test_extras():
    assert missing_extra(ModuleNotFoundError(name="torch")) == "sglang"
    assert missing_extra(ModuleNotFoundError(name="tokenizers.models")) == "tokenizers"
    assert missing_extra(ModuleNotFoundError(name="my_module")) is None
