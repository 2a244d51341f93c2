"""What `grape bench engine` measures: steps of a given make-up, and a load from end to end."""

from __future__ import annotations

from dataclasses import dataclass

# The prompt of each sequence that decodes.
CONTEXT = 512


@dataclass(frozen=True, slots=True)
class Decode:
    """One decode step of `batch` sequences, each with `context` tokens of prompt and a few of output."""

    batch: int
    context: int = CONTEXT

    @property
    def label(self) -> str:
        return f"decode, batch {self.batch}"

    @property
    def tokens_out(self) -> int:
        """Tokens whose throughput a reader wants to know."""
        return self.batch


@dataclass(frozen=True, slots=True)
class Prefill:
    """The forward passes of `tokens` new tokens of one prompt behind `prefix` cached ones, up to its first output."""

    tokens: int
    prefix: int = 0

    @property
    def label(self) -> str:
        if not self.prefix:
            return f"prefill {self.tokens:,}"
        return f"chunk of {self.tokens} behind {self.prefix:,}"

    @property
    def tokens_out(self) -> int:
        return self.tokens


@dataclass(frozen=True, slots=True)
class Mixed:
    """One step that carries a decode batch and `tokens` of a prompt behind `prefix` cached ones.

    Where an engine cannot mix, the two passes one after the other.
    """

    batch: int
    tokens: int
    prefix: int = CONTEXT
    context: int = CONTEXT

    @property
    def label(self) -> str:
        return f"decode {self.batch} + {self.tokens} behind {self.prefix:,}"

    @property
    def tokens_out(self) -> int:
        return self.batch + self.tokens


@dataclass(frozen=True, slots=True)
class Load:
    """`requests` submitted at once, each with `prompt` tokens that no cache holds and `output` tokens to make."""

    requests: int
    prompt: int = 128
    output: int = 32

    @property
    def label(self) -> str:
        return f"{self.requests} requests, {self.prompt} in, {self.output} out"

    @property
    def tokens_out(self) -> int:
        return self.requests * self.output


Point = Decode | Prefill | Mixed | Load

POINTS: tuple[Point, ...] = (
    *(Decode(batch) for batch in (1, 4, 8, 16)),
    *(Prefill(tokens) for tokens in (128, 512, 2048)),
    *(Prefill(16, prefix) for prefix in (64, 512, 2048)),
    *(Mixed(8, tokens) for tokens in (16, 64)),
    *(Mixed(1, tokens) for tokens in (8, 16, 32)),
    Load(16),
)
