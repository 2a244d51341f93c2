"""What the cost of a step depends on: a profile belongs to engines with the same key."""

from __future__ import annotations

import hashlib
import re

from pydantic import BaseModel, ConfigDict


class EngineKey(BaseModel):
    """An engine, as far as its steps' times depend on it.

    Args:
        model: the last part of its path or name.
        shape: its architecture and sizes.
        dtype: of weights and activations.
        device: the kind, such as `cpu` or `cuda`.
        processor: the name of the CPU or of the accelerator.
        threads: of torch in the scheduler's process.
        ranks: of tensor parallelism.
        attention: SGLang's attention backend.
        options: what else changes the work of a step, such as quantization or a part of the CPU platform that is off.
        sglang, torch: versions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    shape: str
    dtype: str
    device: str
    processor: str
    threads: int
    ranks: int
    attention: str
    options: tuple[str, ...]
    sglang: str
    torch: str

    def differences(self, engine: EngineKey) -> list[str]:
        """Each field in which a profile with this key does not fit an engine, with both values."""
        return [
            f"{name} is {_text(own)} in the profile and {_text(other)} in the engine"
            for name, own in self
            if own != (other := getattr(engine, name))
        ]

    @property
    def slug(self) -> str:
        """A file name of its own, without the ending."""
        digest = hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]
        parts = (self.model, self.dtype, self.device, f"{self.threads}-threads", digest)
        return "-".join(re.sub(r"[^\w.]+", "-", part).strip("-.") for part in parts).lower()


def _text(value: object) -> str:
    return (", ".join(value) or "none") if isinstance(value, tuple) else str(value)
