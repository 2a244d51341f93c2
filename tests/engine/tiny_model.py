"""A small random Llama with a real tokenizer, whose greedy text varies: breadth without waiting."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

HIDDEN, LAYERS, HEADS, KV_HEADS, INTERMEDIATE = 64, 2, 4, 2, 128
# Larger than usual, so that the logits are far enough apart for greedy text that does not repeat at once.
SPREAD = 0.35


def make(folder: Path, tokenizer_folder: Path, *, context: int = 4096, seed: int = 7) -> Path:
    """Write the model to `folder` with the tokenizer of `tokenizer_folder`; returns `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in tokenizer_folder.iterdir():
        if file.name.startswith(("tokenizer", "special", "generation", "chat_template")):
            shutil.copy(file, folder / file.name)
    config = json.loads((tokenizer_folder / "config.json").read_text())
    config |= {
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HIDDEN // HEADS,
        "max_position_embeddings": context,
        "torch_dtype": "float32",
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * SPREAD

    head = HIDDEN // HEADS
    weights = {
        "model.embed_tokens.weight": random(config["vocab_size"], HIDDEN),
        "model.norm.weight": torch.ones(HIDDEN),
    }
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        shapes = {
            "self_attn.q_proj": (HEADS * head, HIDDEN),
            "self_attn.k_proj": (KV_HEADS * head, HIDDEN),
            "self_attn.v_proj": (KV_HEADS * head, HIDDEN),
            "self_attn.o_proj": (HIDDEN, HEADS * head),
            "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
            "mlp.up_proj": (INTERMEDIATE, HIDDEN),
            "mlp.down_proj": (HIDDEN, INTERMEDIATE),
        }
        weights |= {f"{layer}.{name}.weight": random(*shape) for name, shape in shapes.items()}
        weights[f"{layer}.input_layernorm.weight"] = torch.ones(HIDDEN)
        weights[f"{layer}.post_attention_layernorm.weight"] = torch.ones(HIDDEN)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
