"""Writing bfloat16 tensors as a safetensors file, one after another, without torch.

NumPy has no bfloat16, so the values go out as the upper half of their float32 bits, rounded to
nearest, ties to even. The bytes depend on the tensors alone: equal tensors, equal file.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LazyTensor:
    """A tensor of `shape` whose values `load` computes when they are written."""

    shape: tuple[int, ...]
    load: Callable[[], Float32]

    @property
    def bytes(self) -> int:
        return 2 * int(np.prod(self.shape))


def to_bfloat16(values: Float32) -> npt.NDArray[np.uint16]:
    """The bfloat16 bits of finite float32 `values`."""
    bits: npt.NDArray[np.uint32] = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    half = np.uint32(16)
    return ((bits + (np.uint32(0x7FFF) + ((bits >> half) & np.uint32(1)))) >> half).astype("<u2")


def write(path: Path, tensors: Mapping[str, LazyTensor], done: Callable[[int], None]) -> None:
    """Write `tensors` in the order of their names; `done` hears how many are written. One is in memory at a time."""
    names = sorted(tensors)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name in names:
        end = offset + tensors[name].bytes
        header[name] = {"dtype": "BF16", "shape": list(tensors[name].shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for index, name in enumerate(names):
            values = tensors[name].load()
            if values.shape != tensors[name].shape:
                raise ValueError(f"tensor {name} has shape {values.shape}, expected {tensors[name].shape}")
            file.write(to_bfloat16(values).tobytes())
            done(index + 1)
