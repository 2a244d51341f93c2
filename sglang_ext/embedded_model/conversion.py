"""From the GGUF file of a Llama model with a byte-level BPE tokenizer to a Hugging Face folder.

It covers what the embedded model has, and takes all figures from the file's own metadata.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sglang_ext.embedded_model import safetensors_file
from sglang_ext.embedded_model.errors import EmbeddedModelError, Progress, Step
from sglang_ext.embedded_model.safetensors_file import Float32, LazyTensor

if TYPE_CHECKING:
    from gguf import GGUFReader, ReaderTensor

_CONTROL_TOKEN = 3  # gguf's TokenType.CONTROL
_TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def convert(gguf_path: Path, folder: Path, progress: Progress) -> None:
    """Write config, weights (bfloat16) and tokenizer of `gguf_path` into the existing `folder`.

    Raises `EmbeddedModelError` if the package `gguf` is missing.
    """
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError as error:
        raise EmbeddedModelError(
            f"the package {error.name!r}, which reads the embedded model's file, is missing; "
            'run: pip install "grape-dsl[sglang]"'
        ) from error
    reader = GGUFReader(gguf_path)
    heads = {"attn_q": _number(reader, "llama.attention.head_count")}
    heads["attn_k"] = _number(reader, "llama.attention.head_count_kv")
    tensors = {}
    for tensor in reader.tensors:
        shape = tuple(int(n) for n in reversed(tensor.shape))
        kind = tensor.name.split(".")[-2]
        tensors[_hugging_face_name(tensor.name)] = LazyTensor(shape, partial(_values, tensor, heads.get(kind)))
    progress(Step.CONVERT, 0, len(tensors))
    safetensors_file.write(
        folder / "model.safetensors", tensors, lambda done: progress(Step.CONVERT, done, len(tensors))
    )
    _write_json(folder / "config.json", _config(reader))
    _write_json(folder / "generation_config.json", _special_ids(reader))
    _write_json(folder / "tokenizer.json", _tokenizer(reader))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(reader))


def _hugging_face_name(name: str) -> str:
    if name in _TOP:
        return _TOP[name]
    _, layer, kind, end = name.split(".")
    return f"model.layers.{layer}.{_LAYER[kind]}.{end}"


def _values(tensor: ReaderTensor, heads: int | None) -> Float32:
    from gguf import dequantize

    values = dequantize(tensor.data, tensor.tensor_type)
    return values if heads is None else _unpermute(values, heads)


def _unpermute(weight: Float32, heads: int) -> Float32:
    """Undo GGUF's order of query and key rows: there the two halves that a rotation pairs lie interleaved."""
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return np.swapaxes(pairs, 1, 2).reshape(rows, columns)


def _config(reader: GGUFReader) -> dict[str, Any]:
    heads = _number(reader, "llama.attention.head_count")
    hidden = _number(reader, "llama.embedding_length")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "initializer_range": 0.02,
        "intermediate_size": _number(reader, "llama.feed_forward_length"),
        "max_position_embeddings": _number(reader, "llama.context_length"),
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": _number(reader, "llama.block_count"),
        "num_key_value_heads": _number(reader, "llama.attention.head_count_kv"),
        "rms_norm_eps": _decimal(reader, "llama.attention.layer_norm_rms_epsilon"),
        "rope_scaling": None,
        "rope_theta": _decimal(reader, "llama.rope.freq_base"),
        "tie_word_embeddings": True,  # the file has no output.weight
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": _number(reader, "llama.vocab_size"),
        **_special_ids(reader),
    }


def _special_ids(reader: GGUFReader) -> dict[str, int]:
    names = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    return {name: _number(reader, f"tokenizer.ggml.{short}_token_id") for name, short in names.items()}


def _tokenizer(reader: GGUFReader) -> dict[str, Any]:
    tokens: list[str] = _contents(reader, "tokenizer.ggml.tokens")
    types: list[int] = _contents(reader, "tokenizer.ggml.token_type")
    merges: list[str] = _contents(reader, "tokenizer.ggml.merges")
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": tokens[i], **flags} for i, kind in enumerate(types) if kind == _CONTROL_TOKEN
        ],
        "normalizer": None,
        # GGUF only names the splitting rules ("smollm"): digits one by one, then GPT-2's.
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level | {"add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in merges],
        },
    }


def _tokenizer_config(reader: GGUFReader) -> dict[str, Any]:
    tokens: list[str] = _contents(reader, "tokenizer.ggml.tokens")
    names = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
    return {
        # A class of its own name (GPT2Tokenizer) would be rebuilt by transformers, without the digits rule.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": bool(_contents(reader, "tokenizer.ggml.add_bos_token")),
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": _number(reader, "llama.context_length"),
        **{name: tokens[_number(reader, f"tokenizer.ggml.{short}_token_id")] for name, short in names.items()},
        "chat_template": _contents(reader, "tokenizer.chat_template"),
    }


def _contents(reader: GGUFReader, key: str) -> Any:
    field = reader.get_field(key)
    if field is None:
        raise EmbeddedModelError(f"the GGUF file has no {key}")
    return field.contents()


def _number(reader: GGUFReader, key: str) -> int:
    return int(_contents(reader, key))


def _decimal(reader: GGUFReader, key: str) -> float:
    """A float32 of the metadata as the short decimal number that it stands for."""
    return float(f"{_contents(reader, key):.6g}")


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
