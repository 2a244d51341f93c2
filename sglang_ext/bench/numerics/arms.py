"""How prompts reach the KV: in one pass, in chunks of two sizes, and streamed."""

from __future__ import annotations

from dataclasses import dataclass

from sglang_ext.bench.arms import EngineKind
from sglang_ext.settings import Streaming

DTYPES = ("float32", "bfloat16")
CHUNKS = (32, 48)
"""Tokens of the two plain chunkings."""
STREAMED, MONOLITHIC = "streamed", "monolithic"
FIRST_CHUNKS, SECOND_CHUNKS = (f"chunks of {size}" for size in CHUNKS)
# Longer than any prompt.
_WHOLE = 8192


@dataclass(frozen=True, slots=True)
class NumericsArm:
    """Args: chunk: tokens of prefill in a step at most; None: streamed by Grape."""

    name: str
    about: str
    chunk: int | None = None

    def engine(self, dtype: str) -> EngineKind:
        """Stock SGLang by its default, or Grape.

        Without a prefix cache, and with one prompt in a pass, stock's chunks begin and end where they should.
        """
        flags: tuple[str, ...] = ("--dtype", dtype)
        if self.chunk is None:
            return EngineKind(f"grape-{dtype}", Streaming.ON, flags=flags)
        flags += ("--chunked-prefill-size", str(self.chunk), "--disable-radix-cache", "--prefill-max-requests", "1")
        return EngineKind(f"stock-{self.chunk}-{dtype}", None, mixed=False, flags=flags)


GRAPE = NumericsArm(STREAMED, "Grape, the prompt prefilled while the task before writes, some runs at once")
PLAIN = (
    NumericsArm(MONOLITHIC, "stock SGLang, the same ids as one prompt in one pass", _WHOLE),
    *(
        NumericsArm(name, f"stock SGLang, --chunked-prefill-size {size}", size)
        for name, size in zip((FIRST_CHUNKS, SECOND_CHUNKS), CHUNKS, strict=True)
    ),
)
ARMS = (GRAPE, *PLAIN)
PAIRS = (
    (STREAMED, MONOLITHIC),
    (FIRST_CHUNKS, MONOLITHIC),
    (SECOND_CHUNKS, MONOLITHIC),
    (FIRST_CHUNKS, SECOND_CHUNKS),
)
"""What is compared with what; the last pair is what the first one is held against."""
