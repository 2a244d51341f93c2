"""transformers as an arm, with a tiny random model."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("transformers")

import torch
import transformers

from sglang_ext.bench.engine_arms import TRANSFORMERS
from sglang_ext.bench.point import Decode, Load, Mixed, Prefill
from sglang_ext.bench.point_text import PointText
from sglang_ext.bench.transformers_arm import TransformersArm, TransformersModel


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=200,
    )
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return TransformersModel(str(folder), "float32", PointText(200))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_every_kind_of_point(model, name):
    arm = TransformersArm(name, model)
    points = Decode(3, 20), Prefill(30), Prefill(5, 12), Mixed(2, 5, prefix=12, context=20), Load(3, 8, 4)
    samples = [asyncio.run(arm.measure(point)) for point in points]
    assert all(0 < sample.seconds < 10 for sample in samples)
    assert model.model.config._attn_implementation == name.rpartition("-")[2]
    mixed = samples[3]
    assert mixed.alone_s < mixed.seconds
    assert [sample.alone_s for sample in samples if sample is not mixed] == [None] * 4


@torch.inference_mode()
def test_a_cache_is_what_its_prompts_left(model):
    """Also after steps that made it longer."""
    text, rows, length = model.text, 3, 10
    prompts = [text.row(row, length) for row in range(rows)]
    for _ in range(2):
        cache = model.cached(rows, length)
        assert cache.get_seq_length() == length
        ids = torch.tensor([[5], [6], [7]])
        stepped = model.forward(ids, cache)
        whole = model.forward(torch.cat((torch.tensor(prompts), ids), 1), model.empty())
        assert stepped.tolist() == whole.tolist()


def test_eager_attention_takes_no_long_prompt(model):
    sdpa, eager = (TransformersArm(name, model) for name in TRANSFORMERS)
    assert [arm.takes(Prefill(2048)) for arm in (sdpa, eager)] == [True, False]
    assert all(eager.takes(point) for point in (Prefill(512), Prefill(16, 2048), Decode(16), Load(16)))
