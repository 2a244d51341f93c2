"""What a point must read and compute at least."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.model_work import Piece, least_seconds, operations, passes, read_bytes

pytest.importorskip("torch")

from sglang_ext.bench.machine_limits import LimitProbe, MachineLimits
from sglang_ext.bench.point import POINTS, Decode, Load, Mixed, Prefill

SMALL = ModelSize(
    layer_weights=1000, head_weights=100, layers=2, query_width=8, kv_width=4, item_bytes=2, vocabulary=10
)
LIMITS = MachineLimits(bytes_per_s=1e6, flops=2e6)


def test_read_bytes():
    assert SMALL.kv_bytes == 2 * 2 * 4 * 2
    assert read_bytes([Piece(9, 1), Piece(4, 6)], SMALL) == 2 * 1100 + 20 * 32


def test_operations():
    # Each of three tokens: two for each weight; the head once; contexts of 6, 7 and 8 tokens in two layers.
    assert operations([Piece(5, 3)], SMALL) == 2 * 3 * 1000 + 2 * 100 + 4 * 2 * 8 * 21


@given(prefix=st.integers(0, 50), tokens=st.integers(1, 50))
def test_a_prompt_in_two_pieces_has_the_same_operations(prefix, tokens):
    head = 2 * SMALL.head_weights
    whole = operations([Piece(0, prefix + tokens)], SMALL)
    first = operations([Piece(0, prefix)], SMALL) if prefix else head
    assert first - head + operations([Piece(prefix, tokens)], SMALL) == whole


def test_the_limit_that_binds_counts():
    decode = least_seconds(Decode(1, 10), SMALL, LIMITS)
    assert decode == pytest.approx((2200 + 11 * 32) / 1e6)
    prefill = least_seconds(Prefill(100), SMALL, LIMITS)
    assert prefill == pytest.approx((200_000 + 200 + 64 * 5050) / 2e6)


def test_passes_of_a_load():
    first, *rest = passes(Load(2, prompt=3, output=4))
    assert first == [Piece(0, 3)] * 2
    assert rest == [[Piece(3, 1)] * 2, [Piece(4, 1)] * 2, [Piece(5, 1)] * 2]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.label)
def test_mixing_can_be_cheaper_than_one_after_the_other(point):
    size = ModelSize(
        layer_weights=106_000_000,
        head_weights=28_000_000,
        layers=30,
        query_width=576,
        kv_width=192,
        item_bytes=2,
        vocabulary=49152,
    )
    limits = MachineLimits(bytes_per_s=34e9, flops=430e9)
    least = least_seconds(point, size, limits)
    assert least > 0.007
    if isinstance(point, Mixed):
        parts = Decode(point.batch), Prefill(point.tokens, point.prefix)
        assert least < sum(least_seconds(part, size, limits) for part in parts)


def test_size_of_a_model(tmp_path):
    transformers = pytest.importorskip("transformers")
    transformers.LlamaConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=50,
        tie_word_embeddings=True,
    ).save_pretrained(tmp_path)
    size = ModelSize.of(str(tmp_path), "float32")
    layer = 16 * 16 + 2 * 16 * 8 + 16 * 16 + 3 * 16 * 24
    assert size.layer_weights == 3 * layer
    assert size.head_weights == 16 * 50
    assert (size.layers, size.query_width, size.kv_width, size.item_bytes, size.vocabulary) == (3, 16, 8, 4, 50)


def test_limits_are_measured(monkeypatch):
    from sglang_ext.bench import machine_limits

    monkeypatch.setattr(machine_limits, "_BYTES", 1 << 22)
    monkeypatch.setattr(machine_limits, "_SIDE", 128)
    limits = LimitProbe("float32").measure()
    # Of any machine that this runs on.
    assert 1e8 < limits.bytes_per_s < 1e13
    assert 1e7 < limits.flops < 1e15
