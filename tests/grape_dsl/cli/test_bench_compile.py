"""`grape bench compile`: the shape of what it measures, not the times."""

from __future__ import annotations

import json

from click.testing import CliRunner

from grape_dsl.cli import bench_compile
from grape_dsl.cli.root import root
from grape_dsl.compiler import compile
from grape_dsl.syntax import parse_text


def test_results(monkeypatch):
    monkeypatch.setattr(bench_compile, "_CHAIN", 20)
    monkeypatch.setattr(bench_compile, "_TEXT_SIZES", (1_000, 2_000))
    result = CliRunner().invoke(root, ["bench", "compile", "--repetitions", "2", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found) == {"cold_start", "imports", "ratio", "chain", "text"}
    assert set(found["text"]) == {"1000", "2000"}
    for times in (found["cold_start"], found["imports"], found["chain"], *found["text"].values()):
        assert 0 < times["lowest"] <= times["median"] <= times["highest"]
        assert times["repetitions"] == 2
    assert found["ratio"] == found["cold_start"]["median"] / found["imports"]["median"]
    monkeypatch.setattr(bench_compile, "_process", lambda command: 0.5)
    shown = CliRunner().invoke(root, ["bench", "compile", "--repetitions", "1"]).stdout
    assert "cold start of grape compile         500.0 ms" in shown
    assert "chain of 20 tasks" in shown
    assert "prompt of      2,000 characters" in shown


def test_the_chain_is_a_chain():
    graph = compile(parse_text(bench_compile.chain_program(5)).workflow).graph
    assert graph.tasks() == ["t1", "t2", "t3", "t4", "t5"]
    assert sum(edge.weight is not None for _, _, edge in graph.edges()) == 4
