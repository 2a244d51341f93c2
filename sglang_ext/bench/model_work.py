"""The least that a model must read and compute for a point, and how long that takes at the machine's limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sglang_ext.bench.machine_limits import MachineLimits
from sglang_ext.bench.model_size import ModelSize
from sglang_ext.bench.point import Decode, Load, Mixed, Point, Prefill


@dataclass(frozen=True, slots=True)
class Piece:
    """New tokens of one sequence behind cached ones; the last one's logits are wanted."""

    prefix: int
    tokens: int


def least_seconds(point: Point, size: ModelSize, limits: MachineLimits) -> float:
    """How long the point takes at least: each pass at the limit that binds it."""
    return sum(pass_seconds(pieces, size, limits) for pieces in passes(point))


def passes(point: Point) -> list[list[Piece]]:
    """The forward passes that cannot be avoided. One pass takes any number of tokens."""
    match point:
        case Decode(batch, context):
            return [[Piece(context, 1)] * batch]
        case Prefill(tokens, prefix):
            return [[Piece(prefix, tokens)]]
        case Mixed(batch, tokens, prefix, context):
            return [[*[Piece(context, 1)] * batch, Piece(prefix, tokens)]]
        case Load(requests, prompt, output):
            decodes = [[Piece(prompt + made, 1)] * requests for made in range(output - 1)]
            return [[Piece(0, prompt)] * requests, *decodes]


def pass_seconds(pieces: Sequence[Piece], size: ModelSize, limits: MachineLimits) -> float:
    return max(read_bytes(pieces, size) / limits.bytes_per_s, operations(pieces, size) / limits.flops)


def read_bytes(pieces: Sequence[Piece], size: ModelSize) -> int:
    """All weights once, and the keys and values of each sequence once."""
    weights = (size.layer_weights + size.head_weights) * size.item_bytes
    return weights + sum(piece.prefix + piece.tokens for piece in pieces) * size.kv_bytes


def operations(pieces: Sequence[Piece], size: ModelSize) -> int:
    """Of the linear layers for each new token, the head for each sequence, attention for each new token's context."""
    linear = 2 * size.layer_weights * sum(piece.tokens for piece in pieces)
    head = 2 * size.head_weights * len(pieces)
    # A new token sees the cached ones, those before it and itself.
    seen = sum(piece.tokens * piece.prefix + piece.tokens * (piece.tokens + 1) // 2 for piece in pieces)
    return linear + head + 4 * size.layers * size.query_width * seen
