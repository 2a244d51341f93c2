"""Diagnostics as text and JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grape_dsl.diagnostics import Diagnostic, Related, Severity
from grape_dsl.rendering import WIDEST_LINE, render, to_json
from grape_dsl.syntax.source import SourceText


def lines(text: str, start: int, end: int) -> list[str]:
    source = SourceText(text, "f")
    return render([Diagnostic("c", "m", source.span(start, end))], {"f": text}).split("\n")


def test_all_that_a_diagnostic_has():
    source = SourceText("one\ntwo three\n", "a.flow")
    related = (Related("the other is here", source.span(0, 3)), Related("no place"))
    found = Diagnostic("some-code", "it is wrong", source.span(8, 13), "do this", related, Severity.WARNING)
    assert render([found], {"a.flow": source.text}) == (
        "a.flow:2:5: warning[some-code]: it is wrong\n"
        "  2 | two three\n"
        "    |     ^^^^^\n"
        "  a.flow:1:1: the other is here\n"
        "  1 | one\n"
        "    | ^^^\n"
        "  no place\n"
        "  hint: do this\n"
    )


def test_without_a_span_or_a_source():
    assert render([Diagnostic("c", "m")], {}) == "error[c]: m\n"
    assert render([Diagnostic("c", "m", SourceText("x", "f").span(0, 1))], {}) == "f:1:1: error[c]: m\n"
    assert render([Diagnostic("c", "m", SourceText("x").span(0, 1))], {None: "x"}).startswith("<text>:1:1: error")


def test_several_are_apart_by_an_empty_line():
    assert render([Diagnostic("a", "m"), Diagnostic("b", "n")], {}) == "error[a]: m\n\nerror[b]: n\n"


@pytest.mark.parametrize(
    ("text", "start", "end", "shown", "carets"),
    [
        ("\tab c", 4, 5, "    ab c", "       ^"),
        ("\t\tx", 1, 3, "        x", "    ^^^^^"),
        ("漢字 x", 3, 4, "漢字 x", "     ^"),
        ("x漢字", 1, 3, "x漢字", " ^^^^"),
        ("e\u0301 x", 3, 4, "e\u0301 x", "  ^"),
        ("😀x", 1, 2, "😀x", "  ^"),
        ("ab\ncd", 1, 5, "ab", " ^"),
        ("ab", 2, 2, "ab", "  ^"),
        ("", 0, 0, "", "^"),
        ("a\x1b[31mb", 6, 7, "a\ufffd[31mb", "      ^"),
    ],
)
def test_carets_stand_under_what_is_meant(text: str, start: int, end: int, shown: str, carets: str):
    _, line, marks, *_ = lines(text, start, end)
    assert line.rstrip() == f"  1 | {shown}".rstrip()
    assert marks == f"    | {carets}"


def test_long_lines_are_cut_around_the_place():
    text = "x" * 5000 + "HERE" + "y" * 5000
    _, line, marks, *_ = lines(text, 5000, 5004)
    assert len(line) <= WIDEST_LINE + 6
    assert line[marks.index("^") : marks.rindex("^") + 1] == "HERE"


def test_colours_only_where_asked():
    found = [Diagnostic("c", "m", SourceText("x", "f").span(0, 1), hint="h")]
    assert "\x1b[" not in render(found, {"f": "x"})
    assert "\x1b[" in render(found, {"f": "x"}, color=True)


def test_json():
    source = SourceText("one\ntwo\n", "a.flow")
    found = Diagnostic("c", "m", source.span(4, 7), related=(Related("r"),))
    (record,) = json.loads(json.dumps(to_json([found])))
    assert record == {
        "severity": "error",
        "code": "c",
        "message": "m",
        "file": "a.flow",
        "span": {"start": 4, "end": 7, "line": 2, "column": 1, "end_line": 2, "end_column": 4},
        "hint": None,
        "related": [{"message": "r", "file": None, "span": None}],
    }


@given(st.text(), st.data())
def test_any_span_of_any_text_renders(text: str, data: st.DataObject):
    source = SourceText.of(text, "f")
    start = data.draw(st.integers(0, len(source.text)))
    end = data.draw(st.integers(start, len(source.text)))
    rendered = render([Diagnostic("c", "m", source.span(start, end))], {"f": source.text})
    assert "^" in rendered
