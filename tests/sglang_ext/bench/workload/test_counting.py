"""Counts of tokens without a tokenizer."""

from __future__ import annotations

import pytest

from sglang_ext.bench.workload.counting import estimate, tokenizer_count
from sglang_ext.bench.workload.items import BUILT_IN
from sglang_ext.driver.errors import InputError


def test_estimate_is_close_to_a_tokenizer(embedded_model):
    count = tokenizer_count(embedded_model)
    for file in BUILT_IN.glob("*.jsonl"):
        text = file.read_text(encoding="utf-8")
        assert estimate(text) == pytest.approx(count(text), rel=0.12)


def test_estimate_of_little():
    assert (estimate(""), estimate(" "), estimate("a"), estimate("an apple")) == (0, 1, 1, 2)


def test_a_folder_without_a_tokenizer(tmp_path):
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        tokenizer_count(tmp_path)
