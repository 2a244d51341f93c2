"""Files of every kind: each gives a workflow or one clear diagnostic."""

from __future__ import annotations

import os

import pytest

from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.syntax import load, parse_text
from grape_dsl.syntax.source import SourceText

PROGRAM = """workflow w
add_variable(a, OutputVar)
add_task(t,
\tprompt = \"""
\t\tOne
\t\t\tTwo
\t\t\""",
\ttask_output = a)
"""


def refusal(path) -> tuple[str, str]:
    with pytest.raises(DiagnosticError) as error:
        load(path)
    (diagnostic,) = error.value.diagnostics
    assert str(path) in diagnostic.message
    return diagnostic.code, diagnostic.message


@pytest.mark.parametrize(
    "data",
    [
        PROGRAM.encode(),
        b"\xef\xbb\xbf" + PROGRAM.encode(),
        PROGRAM.replace("\n", "\r\n").encode(),
        PROGRAM.replace("\n", "\r").encode(),
    ],
    ids=["plain", "bom", "crlf", "cr"],
)
def test_encodings_and_line_ends_give_one_program(tmp_path, data):
    path = tmp_path / "p.flow"
    path.write_bytes(data)
    loaded = load(path)
    assert loaded.workflow == parse_text(PROGRAM).workflow
    assert loaded.workflow.tasks["t"].prompt.turns[0].content.parts == ("One\n\tTwo",)
    assert loaded.source == PROGRAM
    assert loaded.workflow.tasks["t"].span.line == 3


def test_missing_file(tmp_path):
    assert refusal(tmp_path / "none.flow")[0] == "file-missing"


def test_folder(tmp_path):
    assert refusal(tmp_path)[0] == "file-folder"


def test_binary(tmp_path):
    path = tmp_path / "p.flow"
    path.write_bytes(b"\x7fELF\0\0\xff")
    assert refusal(path)[0] == "file-binary"


@pytest.mark.parametrize("data", [bytes([1, 0, 2, 0]), bytes([0, 0, 0, 7]), "w\0".encode("utf-16-le")])
def test_binary_of_pairs_is_no_utf16(tmp_path, data):
    path = tmp_path / "p.flow"
    path.write_bytes(data)
    assert refusal(path)[0] == "file-binary"


@pytest.mark.parametrize(
    ("encoding", "marked"),
    [("utf-16-le", True), ("utf-16-le", False), ("utf-16-be", True), ("utf-16-be", False), ("utf-32-le", True)],
)
@pytest.mark.parametrize("text", [PROGRAM, PROGRAM.replace("One", "\u0100\u4e00 \U0001f600")], ids=["ascii", "wide"])
def test_wide_encodings_are_named(tmp_path, encoding, marked, text):
    path = tmp_path / "p.flow"
    path.write_bytes((marked * "\ufeff" + text).encode(encoding))
    code, message = refusal(path)
    assert code == "file-encoding"
    assert encoding.upper().replace("-LE", "LE").replace("-BE", "BE") in message


def test_not_utf8(tmp_path):
    path = tmp_path / "p.flow"
    path.write_bytes("workflow w\n# caf\xe9".encode("latin-1"))
    code, message = refusal(path)
    assert code == "file-encoding"
    assert "0xe9 in line 2" in message


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user who may not read everything")
def test_unreadable(tmp_path):
    path = tmp_path / "p.flow"
    path.write_text(PROGRAM)
    path.chmod(0)
    assert refusal(path)[0] == "file-unreadable"


def test_path_that_is_no_path():
    assert refusal("a\0b")[0] == "file-unreadable"


@pytest.mark.parametrize("text", ["", " \n\t\r\n", "\ufeff"])
def test_empty(tmp_path, text):
    path = tmp_path / "p.flow"
    path.write_text(text, encoding="utf-8")
    assert refusal(path)[0] == "empty-program"


def test_only_comments_has_no_header():
    with pytest.raises(DiagnosticError) as error:
        parse_text("# nothing\n")
    assert [d.code for d in error.value.diagnostics] == ["missing-header"]


def test_ten_megabytes(tmp_path):
    path = tmp_path / "p.flow"
    words = "many words " * 1_000_000
    path.write_text(PROGRAM.replace("One", f"One {words}"))
    (content,) = (turn.content for turn in load(path).workflow.tasks["t"].prompt.turns)
    assert content.parts == (f"One {words}\n\tTwo",)


def test_ten_megabytes_of_rubbish(tmp_path):
    path = tmp_path / "p.flow"
    path.write_text("rubbish (" * 1_100_000)
    with pytest.raises(DiagnosticError) as error:
        load(path)
    assert "syntax" in {d.code for d in error.value.diagnostics}


def test_spans_count_lines_and_columns_from_one():
    span = SourceText.of("ab\ncd\n").span(3, 6)
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 1, 3, 1)
