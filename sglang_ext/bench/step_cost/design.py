"""Which steps a profile is made of: settings drawn log-uniform over what an engine may be asked for."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

# Parts of the settings: without a decode; with contexts of unlike length; and of the probes: nothing in front of the
# piece; several pieces.
NO_ROWS, UNEVEN, FRESH, SEVERAL = 0.15, 0.5, 0.25, 0.25
MOST_PIECES = 4
SHORTEST = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Args:
    rows: sequences that decode at once.
    context: tokens in KV of one sequence.
    kv: tokens in KV of all that decode.
    tokens: of prefill in one step, those that decode included.
    prefix: tokens in front of a piece.
    """

    rows: int
    context: int
    kv: int
    tokens: int
    prefix: int


@dataclass(frozen=True, slots=True)
class Setting:
    """Sequences that decode, and what is prefilled beside them.

    Args:
        contexts: tokens of each sequence's prompt; empty: nothing decodes.
        probes: one step each, of pieces, each (tokens in KV in front, tokens).
    """

    contexts: tuple[int, ...]
    probes: tuple[tuple[tuple[int, int], ...], ...]


class Design:
    """Settings without end; equal seeds give equal ones."""

    def __init__(self, limits: Limits, probes: int = 4, seed: int = 0) -> None:
        self._limits = limits
        self._probes = probes
        self._random = random.Random(seed)

    def draw(self) -> Setting:
        limits, draw = self._limits, self._random
        rows = 0 if draw.random() < NO_ROWS else self._log(1, limits.rows)
        contexts: tuple[int, ...] = ()
        if rows:
            context = self._log(SHORTEST, max(SHORTEST, min(limits.context, limits.kv // rows)))
            uneven = draw.random() < UNEVEN
            contexts = tuple(
                max(SHORTEST, round(context * draw.uniform(0.25, 1))) if uneven else context for _ in range(rows)
            )
        room = max(1, limits.tokens - rows)
        return Setting(contexts, tuple(self._probe(room) for _ in range(self._probes)))

    def _probe(self, room: int) -> tuple[tuple[int, int], ...]:
        draw = self._random
        pieces = draw.randint(2, MOST_PIECES) if draw.random() < SEVERAL else 1
        tokens = max(1, self._log(1, room) // pieces)
        return tuple((self._prefix(), tokens) for _ in range(pieces))

    def _prefix(self) -> int:
        return 0 if self._random.random() < FRESH else self._log(SHORTEST, self._limits.prefix)

    def _log(self, least: int, most: int) -> int:
        return round(least * math.exp(self._random.uniform(0.0, math.log(most / least))))
