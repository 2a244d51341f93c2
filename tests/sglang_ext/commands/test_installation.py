"""What `grape doctor` finds without an engine."""

from __future__ import annotations

import json
import re
from importlib.metadata import EntryPoint

import pytest
from click.testing import CliRunner

from sglang_ext.commands import doctor as command
from sglang_ext.commands.installation import GENERAL, PLATFORMS, Report, look, plugin_problems

FOUND = {
    GENERAL: [EntryPoint("grape", "sglang_ext.engine.plugin:register", GENERAL), EntryPoint("other", "x:y", GENERAL)],
    PLATFORMS: [EntryPoint("grape_cpu", "sglang_ext.engine.cpu.activation:platform", PLATFORMS)],
}


@pytest.mark.parametrize(
    ("environ", "on_cpu", "words"),
    [
        ({}, True, []),
        ({"SGLANG_PLUGINS": "grape, grape_cpu"}, True, []),
        ({"SGLANG_PLUGINS": ""}, True, []),
        ({"SGLANG_PLUGINS": "grape"}, True, ["SGLANG_PLUGINS=grape leaves out the plugin 'grape_cpu'"]),
        ({"SGLANG_PLUGINS": "grape"}, False, []),
        ({"SGLANG_PLUGINS": "grape_cpu"}, True, ["leaves out the plugin 'grape'"]),
        ({"SGLANG_PLATFORM": "grape_cpu"}, True, []),
        ({"SGLANG_PLATFORM": "cuda"}, False, ["SGLANG_PLATFORM=cuda makes SGLang drop"]),
        ({"SGLANG_USE_CPU_ENGINE": "1"}, True, ["SGLANG_USE_CPU_ENGINE"]),
        ({"SGLANG_USE_CPU_ENGINE": "1"}, False, []),
    ],
)
def test_settings_that_switch_plugins_off(environ: dict[str, str], on_cpu: bool, words: list[str]) -> None:
    problems = plugin_problems(FOUND, environ, on_cpu=on_cpu)
    assert len(problems) == len(words)
    assert all(word in problem for word, problem in zip(words, problems, strict=True))


def test_entry_points_that_are_missing() -> None:
    problems = plugin_problems({GENERAL: [], PLATFORMS: []}, {}, on_cpu=True)
    assert len(problems) == 2 and "entry point 'grape'" in problems[0] and "'grape_cpu'" in problems[1]


def test_settings_are_looked_at() -> None:
    report = look({"GRAPE_LAPS": "1"})
    assert report.settings["lapse"] == 30.0
    assert "GRAPE_LAPS is set, but Grape has no such setting; did you mean GRAPE_LAPSE?" in report.problems
    assert look({"GRAPE_LAPSE": "1"}).settings["lapse"] == 1.0
    report = look({"GRAPE_LAPSE": "soon"})
    assert report.settings == {} and any("GRAPE_LAPSE='soon'" in problem for problem in report.problems)


def test_the_cpus_defaults_are_told() -> None:
    report = look({"OMP_NUM_THREADS": "7"})
    assert (report.device == "cpu") == bool(report.defaults)
    if report.defaults:
        assert report.defaults["threads"].startswith("7 (OMP_NUM_THREADS")
        assert set(report.defaults) == {"dtype", "threads", "KV pool", "chunk", "running requests", "attention"}
        off = look({"GRAPE_CPU_KERNEL": "off"})
        assert off.defaults["attention"] == "torch, since GRAPE_CPU_KERNEL is off"


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = {"threads": "2 (2 cores)"}
    report = Report(
        "0.1.0",
        "0.5.23",
        "0.5.23",
        "3.11",
        "cpu",
        2,
        defaults,
        {GENERAL: ["grape (grape-dsl)"]},
        {},
        "ready",
        "/m",
        3,
        "/p",
    )
    monkeypatch.setattr(command, "look", lambda: report)
    result = CliRunner().invoke(command.doctor, ["--json"])
    assert result.exit_code == 0
    value = json.loads(result.stdout)
    assert value["plugins"] == {GENERAL: ["grape (grape-dsl)"]} and value["engine"] is None and value["problems"] == []
    assert re.search(r"^default threads +2 \(2 cores\)$", CliRunner().invoke(command.doctor, []).stdout, re.M)
    report.problems.append("no plugin")
    result = CliRunner().invoke(command.doctor, [])
    assert result.exit_code == 3 and "problem: no plugin" in result.stderr
    assert "nothing keeps" not in result.stdout
    for wrong in (["--model", "m"], ["--engine", "--url", "http://x"]):
        assert CliRunner().invoke(command.doctor, wrong).exit_code == 2
