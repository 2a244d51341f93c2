"""The cost model T = F(N_seq, N_batch): how long a step takes.

Grape paper (SC 2026), section III-D: F maps the KV tokens that a step reads and the tokens that it processes to
its time. Here F has the terms that measurements asked for, all of them non-negative: a fixed cost, one per decode
row, per prefill token, per piece of a prompt, per token of KV read, per product of prefill tokens and context, one
for a step with any prefill at all (it loses the decode graph of a GPU), and a knee: tokens beyond it are no longer
hidden behind the reading of the weights. A knee far above all steps leaves the flat roof of a GPU, none at all an
additive F.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sglang_ext.policy.snapshot import Decode


@dataclass(frozen=True, slots=True)
class Load:
    """What a step does, as far as its time depends on it.

    Args:
        rows: decode rows.
        tokens: tokens of prefill, of all pieces.
        kv: tokens of KV read (N_seq): the contexts of all rows, and of each piece once.
        attention: sum over the pieces of tokens x (context + tokens / 2).
        pieces: of prompts.
    """

    rows: int = 0
    tokens: int = 0
    kv: int = 0
    attention: float = 0.0
    pieces: int = 0

    @classmethod
    def of(cls, decodes: Iterable[Decode], pieces: Iterable[tuple[int, int]] = ()) -> Load:
        """The load of these decodes with these pieces, each (context, tokens)."""
        rows = kv = 0
        for decode in decodes:
            rows += 1
            kv += decode.context
        return cls(rows, kv=kv).with_pieces(pieces)

    def with_pieces(self, pieces: Iterable[tuple[int, int]]) -> Load:
        """This load with more pieces, each (context, tokens)."""
        load = self
        for context, tokens in pieces:
            load = load.plus(context, tokens)
        return load

    def plus(self, context: int, tokens: int, given: int = 0) -> Load:
        """This load with one more piece, or with a longer one: `given` tokens of it are in the load already."""
        if tokens <= 0:
            return self
        attention = self.attention + tokens * (context + given + tokens / 2)
        if given:
            return Load(self.rows, self.tokens + tokens, self.kv, attention, self.pieces)
        return Load(self.rows, self.tokens + tokens, self.kv + context, attention, self.pieces + 1)

    @property
    def regime(self) -> str:
        """`decode`, `mixed` or `prefill`."""
        if not self.tokens:
            return "decode"
        return "mixed" if self.rows else "prefill"


@dataclass(frozen=True, slots=True)
class CostModel:
    """F with its coefficients, all non-negative.

    Args:
        fixed: seconds of any step.
        row: seconds per decode row.
        token: seconds per prefill token.
        prefill: seconds that a step with any prefill takes more.
        piece: seconds per piece of a prompt.
        kv: seconds per token of KV read.
        attention: seconds per prefill token and token of context.
        knee: tokens of a step (rows and prefill) up to which they are hidden; 0 without a knee.
        beyond: seconds per token beyond the knee.
        errors: mean relative error on held-out steps, by regime and `all`; empty where none were held out.
    """

    fixed: float
    row: float = 0.0
    token: float = 0.0
    prefill: float = 0.0
    piece: float = 0.0
    kv: float = 0.0
    attention: float = 0.0
    knee: float = 0.0
    beyond: float = 0.0
    errors: dict[str, float] = field(default_factory=dict)

    def time(self, load: Load) -> float:
        """Seconds that a step with this load takes."""
        seconds = self.fixed + self.row * load.rows + self.kv * load.kv
        if load.tokens:
            seconds += self.prefill + self.piece * load.pieces + self.token * load.tokens
            seconds += self.attention * load.attention
        if self.knee and load.rows + load.tokens > self.knee:
            seconds += self.beyond * (load.rows + load.tokens - self.knee)
        return seconds

    def predict(self, decodes: Iterable[Decode], pieces: Iterable[tuple[int, int]] = ()) -> float:
        """Seconds of a step with these decodes and pieces, each (context, tokens)."""
        return self.time(Load.of(decodes, pieces))

    def decode_step(self) -> float:
        """u: seconds of the unloaded decode step, one row with nothing to read."""
        return self.time(Load(rows=1))

    def ridge(self, load: Load, share: float, most: int) -> int:
        """Tokens of prefill that can join a load of decodes before T is a share above it; at most `most`."""
        return self.room(load, 0, self.time(load) * (1 + share), most)

    def room(self, load: Load, context: int, limit_s: float, most: int, given: int = 0) -> int:
        """How many tokens can be added to a load so that it takes at most `limit_s`; from 0 to `most`.

        Args:
            context: tokens in KV before them.
            given: tokens of the same prompt that the load has already.
        """
        if most <= 0:
            return 0
        time = self._time_with(load, context, given)
        if time(1) > limit_s:
            return 0
        low, high = 1, most
        if time(high) <= limit_s:
            return high
        while high - low > 1:
            middle = (low + high) // 2
            if time(middle) <= limit_s:
                low = middle
            else:
                high = middle
        return low

    def _time_with(self, load: Load, context: int, given: int) -> Callable[[int], float]:
        """As `time` of the load with so many more tokens, one or more, of a prompt: asked for many numbers in a row."""
        fresh = not given
        base = self.fixed + self.row * load.rows + self.kv * (load.kv + context if fresh else load.kv)
        pieces = self.prefill + self.piece * (load.pieces + fresh)
        before, sum_before, rows = context + given, load.attention, load.rows

        def time(tokens: int) -> float:
            # Term by term as in `time`, so that both round alike.
            size = load.tokens + tokens
            seconds = base + (pieces + self.token * size)
            seconds += self.attention * (sum_before + tokens * (before + tokens / 2))
            if self.knee and rows + size > self.knee:
                seconds += self.beyond * (rows + size - self.knee)
            return seconds

        return time

    def as_dict(self) -> dict[str, Any]:
        """A plain form for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> CostModel:
        """The model of a plain form; raises TypeError on unknown names and ValueError on negative numbers."""
        model = cls(**values)
        for name, value in values.items():
            if name != "errors" and not value >= 0:
                raise ValueError(f"cost model: {name} is {value!r}; it takes a number of at least 0")
        return model

    @classmethod
    def of(cls, coefficients: Mapping[str, float], knee: float = 0.0) -> CostModel:
        """The model of fitted coefficients by name."""
        return cls(**coefficients, knee=knee)  # type: ignore[arg-type]

    def with_errors(self, errors: dict[str, float]) -> CostModel:
        """The same model with its held-out errors."""
        return replace(self, errors=errors)
