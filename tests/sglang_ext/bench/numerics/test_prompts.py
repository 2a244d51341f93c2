"""The prompts: real text, whole, the same each time."""

from __future__ import annotations

import json

import pytest

from sglang_ext.bench.numerics.prompts import READER, WRITER, program, stretches, texts
from sglang_ext.bench.workload.workloads import WORKLOADS
from sglang_ext.driver.errors import InputError


def test_built_in_texts_are_of_all_workloads():
    assert len(texts(None)) >= len(WORKLOADS)


def test_stretches_are_short_parts_of_the_texts_and_repeat():
    given = ["one two  three\nfour " * 40, "short text"]
    found = stretches(given, 7)
    assert found == stretches(given, 7)
    assert [text == "short text" for text in found] == [False, True] * 3 + [False]
    assert all(text in given[0] and len(text.split()) == 24 for text in found[::2])
    assert len(set(found[::2])) > 1, "always the same place"


def test_nothing_to_make_prompts_of():
    with pytest.raises(InputError, match="no inputs"):
        stretches([], 3)


def test_an_input_without_its_field(tmp_path):
    for workload in WORKLOADS.values():
        for pattern in workload.patterns:
            (tmp_path / pattern.replace("*", "x")).write_text(json.dumps({"nothing": 1}))
    with pytest.raises(InputError, match="cannot be used"):
        texts(tmp_path)


def test_the_note_stands_inside_the_readers_prompt():
    graph = program(16).graph
    assert graph.tasks() == [WRITER, READER]
    known_behind = [node for node in graph.chain(READER) if node.source is None and node.parts]
    assert len(known_behind) > 1
