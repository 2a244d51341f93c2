"""`grape compile`, as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grape_dsl.cli.root import root

GOOD = """\
workflow tea
add_variable(topic, InputVar)
add_variable(plan, IntermediateVar)
add_variable(text, OutputVar)
add_task(think, prompt = "Plan: {{topic}}", task_output = plan, max_tokens = 12)
add_task(write, prompt = "Write. {{plan}} Go.", task_output = text)
"""
WARNED = GOOD.replace("Write. ", "Write {topic}. {{topic}} ")
WRONG = GOOD.replace("{{plan}}", "{{plam}}")


def grape(*arguments: str, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(root, [*arguments], input=stdin, prog_name="grape")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "tea.flow"
    path.write_text(GOOD, encoding="utf-8")
    return str(path)


def test_text_is_the_default(program):
    result = grape("compile", program)
    assert result.exit_code == 0
    assert result.stdout.startswith("workflow tea: 2 tasks, 6 micro-tasks, sizes in characters\n")
    assert "comes from think/decode, in chunks of 16 tokens" in result.stdout
    assert result.stdout == grape("compile", program, "--format", "text").stdout
    assert result.stderr == ""


def test_standard_input(program):
    assert grape("compile", "-", stdin=GOOD).stdout == grape("compile", program).stdout
    wrong = grape("compile", "-", stdin=WRONG)
    assert wrong.exit_code == 1
    assert "<stdin>:6" in wrong.stderr
    binary = grape("compile", "-", stdin=b"caf\xe9")
    assert binary.exit_code == 2
    assert "not UTF-8" in binary.stderr


TWIN = """\
from grape_dsl import Workflow
tea = Workflow("tea")
tea.add_variable("topic", "InputVar")
tea.add_variable("text", "OutputVar")
tea.add_task("write", prompt="Write about {{topic}}.", task_output="text")
"""


def test_python_programs(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "tea_twin.py"
    file.write_text(TWIN)
    result = grape("compile", str(file))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("workflow tea: 1 task")
    assert grape("compile", f"{file}:tea", "--stats").exit_code == 0
    other = grape("compile", f"{file}:coffee")
    assert other.exit_code == 2
    assert "no workflow 'coffee'" in other.stderr
    assert grape("compile", str(tmp_path / "none.py")).exit_code == 2
    file.write_text(TWIN.replace("{{topic}}", "{{topik}}"))
    wrong = grape("compile", str(file))
    assert wrong.exit_code == 1
    assert "topik" in wrong.stderr


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("x = 1\n1 / 0\n", 2, "ZeroDivisionError: division by zero"),
        ("import json\n\njson.loads('{')\n", 3, "JSONDecodeError: Expecting"),
        ("def f(:\n", 1, "SyntaxError: invalid syntax"),
        ("import no_such_module_anywhere\n", 1, "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("assert False\n", 1, "fails: AssertionError\n"),
    ],
)
def test_python_code_that_fails(tmp_path, monkeypatch, code, line, message):
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "failing_program.py"
    file.write_text(code)
    result = grape("compile", str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"{file}:{line}:1: error[python-error]: the program's Python code fails: ")
    assert message in result.stderr and "Traceback" not in result.stderr


def test_python_code_that_needs_an_extra(tmp_path, monkeypatch):
    """The command's end knows what to install."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setitem(sys.modules, "torch", None)
    file = tmp_path / "needy_program.py"
    file.write_text("import torch\n")
    result = CliRunner().invoke(root, ["compile", str(file)], prog_name="grape")
    assert isinstance(result.exception, ImportError)


def test_formats(program):
    assert json.loads(grape("compile", program, "--format", "json").stdout)["format"] == "grape.graph/1"
    assert grape("compile", program, "-f", "mermaid").stdout.startswith("flowchart LR\n")
    assert grape("compile", program, "-f", "dot").stdout.startswith('digraph "tea" {\n')


def test_edge_weight(program):
    graph = json.loads(grape("compile", program, "-f", "json", "--edge-weight", "3").stdout)
    assert {edge["weight"] for edge in graph["edges"]} == {None, 3}


def test_stats(program):
    assert "depth: 2 decodes" in grape("compile", program, "--stats").stdout
    stats = json.loads(grape("compile", program, "--stats", "-f", "json").stdout)["stats"]
    assert stats["depth"] == 2
    refused = grape("compile", program, "--stats", "-f", "dot")
    assert refused.exit_code == 2
    assert "--stats goes with --format text or json, not dot" in refused.stderr


def test_errors(tmp_path):
    path = tmp_path / "wrong.flow"
    path.write_text(WRONG, encoding="utf-8")
    result = grape("compile", str(path))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "unknown-name" in result.stderr
    assert "{{plam}}" in result.stderr
    assert "^" in result.stderr
    found = json.loads(grape("compile", str(path), "--json-diagnostics").stderr)
    assert "unknown-name" in [entry["code"] for entry in found]


def test_warnings_do_not_fail(tmp_path):
    path = tmp_path / "warned.flow"
    path.write_text(WARNED, encoding="utf-8")
    result = grape("compile", str(path))
    assert result.exit_code == 0
    assert result.stdout.startswith("workflow tea")
    assert result.stderr.count("single-braces") == 1


@pytest.mark.parametrize("what", ["missing", "folder", "binary", "latin", "empty"])
def test_files_that_are_no_programs(tmp_path, what):
    path = tmp_path / "odd.flow"
    contents = {"binary": b"workflow\0", "latin": "workflow caf\xe9".encode("latin-1"), "empty": b""}
    if what == "folder":
        path.mkdir()
    elif what != "missing":
        path.write_bytes(contents[what])
    result = grape("compile", str(path))
    assert result.exit_code == (1 if what == "empty" else 2)
    assert result.stdout == ""
    assert "odd.flow" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compile"], "Missing argument 'FILE'"),
        (["compile", "x.flow", "--edge-weight", "0"], "0 is not in the range x>=1"),
        (["compile", "x.flow", "--format", "xml"], "'text', 'json', 'mermaid', 'dot'"),
        (["compile", "x.flow", "--tokenizer", "no/such/folder"], "no folder 'no/such/folder'"),
        (["compile", "x.flow", "--formt", "json"], "No such option"),
        (["compil", "x.flow"], "Did you mean 'compile'?"),
        (["zzz"], "No such command 'zzz'."),
        (["bench", "compil"], "Did you mean 'compile'?"),
    ],
)
def test_usage_errors(arguments, said):
    result = grape(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_help_and_version():
    for arguments in (["--help"], ["compile", "--help"], ["bench", "--help"], ["bench", "compile", "--help"]):
        result = grape(*arguments)
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: grape")
    assert "Exit codes" in grape("compile", "--help").stdout
    assert grape("--version").stdout.startswith("grape ")


def test_a_tokenizer_folder_counts_tokens(tmp_path, program):
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: number for number, word in enumerate(["[UNK]", "Plan", "Write", "Go", ":", "."])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    refused = grape("compile", program, "--tokenizer", str(tmp_path))
    assert refused.exit_code == 2
    assert "no chat template" in refused.stderr
    raw = GOOD.replace('prompt = "', 'prompt = raw("').replace('", task', '"), task')
    result = grape("compile", "-", "--tokenizer", str(tmp_path), "-f", "json", stdin=raw)
    assert result.exit_code == 0, result.stderr
    graph = json.loads(result.stdout)
    assert graph["unit"] == "tokens"
    assert [node.get("size") for node in graph["nodes"]] == [2, None, 2, None, 2, None]


def test_counters_of_other_packages(tmp_path, monkeypatch, program):
    pytest.importorskip("tokenizers")
    module = """
        class Counter:
            def known_tokens(self, pieces):
                return [7] * (1 + sum(type(piece).__name__ == "Hole" for piece in pieces))
        """
    (tmp_path / "sevens.py").write_text(textwrap.dedent(module), encoding="utf-8")
    info = tmp_path / "sevens-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sevens\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[grape.token_counters]\nsevens = sevens:Counter\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    graph = json.loads(grape("compile", program, "--tokenizer", "sevens", "-f", "json").stdout)
    assert [node["size"] for node in graph["nodes"] if "size" in node] == [7, 7, 7]
    assert "'sevens'" in grape("compile", program, "--tokenizer", "eights").stderr


def test_a_terminal_without_unicode(tmp_path):
    path = tmp_path / "words.flow"
    path.write_text(GOOD.replace("Plan:", "Plan 漢字 😀:"), encoding="utf-8")
    for form in ("text", "json", "dot"):
        done = subprocess.run(
            [sys.executable, "-m", "grape_dsl", "compile", str(path), "--format", form],
            env=os.environ | {"PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=True,
        )
        assert "Plan 漢字 😀" in done.stdout.decode("utf-8")
