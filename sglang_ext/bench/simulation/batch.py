"""One step as it was formed."""

from __future__ import annotations

from dataclasses import dataclass, field

from sglang_ext.bench.simulation.request import Request
from sglang_ext.policy.cost_model import Load


@dataclass(slots=True)
class PiecePlan:
    """A piece of a prompt in a step. Args: last: its first output token comes from this step."""

    request: Request
    context: int
    tokens: int
    last: bool


@dataclass(slots=True)
class Batch:
    rows: list[Request] = field(default_factory=list)
    pieces: list[PiecePlan] = field(default_factory=list)
    start_s: float = 0.0
    end_s: float = 0.0
    load: Load = field(default_factory=Load)

    def weigh(self) -> Load:
        """The load that the step's time depends on."""
        decodes = Load(len(self.rows), kv=sum(row.context for row in self.rows))
        self.load = decodes.with_pieces((piece.context, piece.tokens) for piece in self.pieces)
        return self.load
