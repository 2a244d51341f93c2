"""Inputs from options and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grape_dsl.variables import InputVar
from grape_dsl.workflow import Workflow
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.inputs import complete_inputs, read_objects, read_option, read_options


def test_defaults_fill_in(chain: Workflow) -> None:
    assert complete_inputs(chain, {"question": "q"}) == {"question": "q", "tone": "calm"}
    assert complete_inputs(chain, {"question": "", "tone": "x"}) == {"question": "", "tone": "x"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "not given: question"),
        ({"question": "q", "questoin": "r"}, "'questoin' is not an input of workflow search; did you mean 'question'"),
        ({"question": 3}, "input 'question' must be text, not int"),
        ({"question": "q", "answer": "a"}, "'answer' is not an input"),
        ({"question": "why\ud800"}, "input 'question' has U+D800 at character 4, half of a surrogate pair"),
    ],
)
def test_what_is_wrong_is_said(chain: Workflow, values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        complete_inputs(chain, values, "runs.jsonl, line 3")
    assert message in str(error.value) and str(error.value).startswith("runs.jsonl, line 3: ")


def test_defaults_are_looked_at_where_they_are_used() -> None:
    workflow = Workflow("w")
    workflow.add_variable("x", InputVar, default="\udfff")
    with pytest.raises(InputError, match=r"the default of input 'x' has U\+DFFF at character 1"):
        complete_inputs(workflow, {})
    assert complete_inputs(workflow, {"x": "y"}) == {"x": "y"}


def test_all_faults_are_told_at_once(chain: Workflow) -> None:
    with pytest.raises(InputError) as error:
        complete_inputs(chain, {"x": "1", "tone": 2})
    assert len(str(error.value).splitlines()) == 3


@given(st.text(), st.from_regex(r"[a-z_]+", fullmatch=True))
def test_any_value_can_be_given(value: str, name: str) -> None:
    option = f"{name}={'@' + value if value.startswith('@') else value}"
    assert read_option(option) == (name, value)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(b"\xef\xbb\xbfh\xc3\xa9\r\n")
    assert read_options([f"a=@{tmp_path}/long.txt", "b=c=d"]) == {"a": "hé\n", "b": "c=d"}
    (tmp_path / "bad").write_bytes(b"\xff")
    for option, message in [
        (f"a=@{tmp_path}/bad", "not UTF-8"),
        (f"a=@{tmp_path}/none", "cannot read"),
        (f"a=@{tmp_path}", "cannot read"),
        ("a", "name=value"),
        ("=x", "name=value"),
    ]:
        with pytest.raises(InputError, match=message):
            read_options([option])
    with pytest.raises(InputError, match="twice"):
        read_options(["a=1", "a=2"])


def test_many_runs(tmp_path: Path) -> None:
    rows = [{"question": "one"}, {"question": "two"}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "b.json").write_text(json.dumps(rows[0]))
    lines = "".join(json.dumps(row) + "\n\n" for row in rows)
    (tmp_path / "c.jsonl").write_text(lines)
    assert [v for _, v in read_objects(f"{tmp_path}/a.json", [])] == rows
    assert [v for _, v in read_objects(f"{tmp_path}/b.json", [])] == rows[:1]
    assert [v for _, v in read_objects(f"{tmp_path}/c.jsonl", [])] == rows
    assert list(read_objects("-", lines.splitlines())) == [
        ("standard input, line 1", rows[0]),
        ("standard input, line 3", rows[1]),
    ]
    for text, message in [("{", "not JSON"), ("[1]", "line 1: inputs are a JSON object")]:
        (tmp_path / "d.jsonl").write_text(text)
        with pytest.raises(InputError, match=message):
            list(read_objects(f"{tmp_path}/d.jsonl", []))


def test_json_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    texts = ["a\u2028b\u2029c\x85d", "e\x7f"]
    lines = "".join(json.dumps({"q": text}, ensure_ascii=False) + "\r\n" for text in texts)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + (lines + '{"q":\r"f"}\n{').encode())
    found = read_objects(str(path), [])
    assert [next(found) for _ in range(3)] == [
        (f"{path}, line {number}", {"q": text}) for number, text in enumerate([*texts, "f"], 1)
    ]
    with pytest.raises(InputError, match="line 4: not JSON"):
        next(found)
