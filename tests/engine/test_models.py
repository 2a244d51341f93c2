"""Models on the CPU platform give the greedy ids that transformers gives, in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.engine.server import Server, serve

# An engine for each model.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

SHAPE = {
    "vocab_size": 1024,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "tie_word_embeddings": False,
}
MODELS = {
    "llama": transformers.LlamaConfig,
    "qwen2": transformers.Qwen2Config,
    "qwen3": transformers.Qwen3Config,
}
# Chunks of 64 and mixed batches: prompts are prefilled in pieces, beside decodes.
FLAGS = ["--chunked-prefill-size", "64", "--enable-mixed-chunk", "--skip-tokenizer-init"]
LENGTHS = (1, 2, 17, 63, 64, 65, 130, 300)
# Logits closer than this are a tie that rounding may break either way.
TIE = 1e-4


def make(folder: Path, kind: str) -> Path:
    torch.manual_seed(3)
    config = MODELS[kind](**SHAPE)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder)
    # Norms and biases are ones and zeros in a new model; here each must matter.
    weights = load_file(folder / "model.safetensors")
    for name, weight in weights.items():
        weight.copy_(torch.randn_like(weight) * 0.3 + (1.0 if "norm" in name else 0.0))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def generate(server: Server, prompts: list[list[int]], tokens: int) -> list[list[int]]:
    request = {
        "input_ids": prompts,
        "sampling_params": {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True},
    }
    answers: list[dict[str, Any]] = httpx.post(f"{server.url}/generate", json=request, timeout=600).json()
    return [answer["output_ids"] for answer in answers]


def check(model: Any, prompts: list[list[int]], outputs: list[list[int]]) -> None:
    """Each id is the reference's best one, given the ids before it."""
    for prompt, output in zip(prompts, outputs, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([prompt + output])).logits[0, len(prompt) - 1 : -1]
        chosen = logits.gather(1, torch.tensor(output)[:, None])[:, 0]
        behind = logits.max(-1).values - chosen
        assert behind.max() <= TIE, (len(prompt), int(behind.argmax()), float(behind.max()))


@pytest.mark.parametrize("kind", MODELS)
def test_small_random_models(kind: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "model", kind)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(2, SHAPE["vocab_size"], (n,), generator=generator).tolist() for n in LENGTHS]
    with serve(folder, tmp_path / "server", FLAGS, stock=True) as server:
        assert "dense layers" in server.log.read_text()
        outputs = generate(server, prompts, 40)
    assert all(len(set(output)) > 5 for output in outputs), "text that repeats itself shows little"
    check(model, prompts, outputs)


def test_the_embedded_model(embedded_model: Path, tmp_path: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(embedded_model, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(embedded_model)
    topics = ("rain", "bread", "ships", "stars", "bees", "chess", "glass", "iron", "maps", "owls")
    prompts = [tokenizer.encode(f"{start} {topic}") for topic in topics for start in ("A story about", "How to get")]
    with serve(embedded_model, tmp_path, ["--enable-mixed-chunk"], stock=True) as server:
        outputs = generate(server, prompts, 200)
    check(model, prompts, outputs)
