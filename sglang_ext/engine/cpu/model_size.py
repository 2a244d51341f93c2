"""What a model asks of memory, from its configuration and the headers of its files, before any of it is loaded."""

from __future__ import annotations

import json
import struct
from math import prod
from pathlib import Path
from typing import Any

from sglang.srt.arg_groups.model_override_base import model_config_of
from sglang.srt.configs.model_config import AttentionArch

from sglang_ext.engine.cpu.pool_size import ModelSize

BYTES = {"float32": 4, "float": 4}


def model_size(server_args: Any, dtype: str, copies: int) -> ModelSize | None:
    """The size of the model of `server_args`; None if its KV is not that of plain attention.

    Weights that are not in a local folder yet count as nothing.

    Args:
        dtype: of the weights, as SGLang names it; the KV's as well, unless it has one of its own.
        copies: how often the weights stand in memory.
    """
    config = model_config_of(server_args)
    if config.attention_arch != AttentionArch.MHA:
        return None
    size = BYTES.get(dtype, 2)
    kv_size = size if server_args.kv_cache_dtype == "auto" else 1 if "8" in server_args.kv_cache_dtype else 2
    return ModelSize(
        weights=copies * size * stored_numbers(Path(server_args.model_path)),
        token=kv_size
        * config.num_hidden_layers
        * config.get_total_num_kv_heads()
        * (config.head_dim + config.v_head_dim),
        context=config.context_len,
    )


def stored_numbers(folder: Path) -> int:
    """How many numbers a model's safetensors files hold; 0 where there are none, or none that can be read."""
    try:
        index = folder / "model.safetensors.index.json"
        if index.exists():
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        else:
            # Beside the usual files some models have the same weights once more.
            names = [file.name for file in folder.glob("*.safetensors") if not file.name.startswith("consolidated")]
        return sum(_numbers(folder / name) for name in names)
    except (OSError, ValueError, KeyError, struct.error):
        return 0


def _numbers(file: Path) -> int:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > file.stat().st_size:
            raise ValueError(f"{file} is no safetensors file")
        header = json.loads(stream.read(length))
    return sum(prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
