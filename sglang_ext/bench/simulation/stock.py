"""SGLang's own order of a step, modelled: prefill first, mixed chunks, intervals, longest cached prefix first."""

from __future__ import annotations

from dataclasses import dataclass

from sglang_ext.bench.simulation.batch import Batch, PiecePlan
from sglang_ext.bench.simulation.engine import Engine
from sglang_ext.bench.simulation.request import Request

# Of prefill in one step, whatever the chunk (SGLang's max_prefill_tokens).
MOST_PREFILL = 16384
# Above so many waiting requests SGLang's lpm falls back to the order of arrival.
LPM_MOST = 128


@dataclass(frozen=True, slots=True)
class StockSettings:
    """Args:
    chunk: tokens of a step's prefill; None: the machine's default.
    mixed: decodes run in the steps that prefill, and count in the chunk.
    interval: steps of decode between two of prefill (`--prefill-decode-interval`).
    lpm: the waiting request with the longest cached prefix first.
    priorities: small `urgency` first.
    """

    chunk: int | None = None
    mixed: bool = False
    interval: int = 0
    lpm: bool = False
    priorities: bool = False


class StockFormer:
    """SGLang's scheduler, as far as the time of tokens depends on it."""

    def __init__(self, settings: StockSettings) -> None:
        self.settings = settings
        self._waiting: list[Request] = []
        self._chunked: Request | None = None
        self._decodes_left = 0

    def arrive(self, request: Request) -> None:
        self._waiting.append(request)

    def form(self, engine: Engine) -> Batch:
        """A step of prefill if there is one, mixed or alone, else of decodes."""
        if self._decodes_left and engine.running:
            self._decodes_left -= 1
            batch = Batch()
        else:
            batch = self._prefill(engine)
        if batch.pieces:
            self._decodes_left = self.settings.interval
        if not batch.pieces or self.settings.mixed:
            batch.rows = list(engine.running)
        return batch

    def _prefill(self, engine: Engine) -> Batch:
        batch = Batch()
        if self._chunked is None and not self._waiting:
            return batch
        settings, cache, running = self.settings, engine.cache, engine.running
        mixed_rows = len(running) if settings.mixed else 0
        chunk = (settings.chunk or engine.machine.chunk) - mixed_rows
        most = MOST_PREFILL - mixed_rows
        free = cache.available - engine.reserved()
        if self._chunked is not None and chunk > 0:
            request = self._chunked
            tokens = min(chunk, request.known - request.computed)
            last = request.computed + tokens == request.known
            batch.pieces.append(PiecePlan(request, request.computed, tokens, last))
            chunk, most, free = chunk - tokens, most - tokens, free - tokens - (request.limit if last else 0)
            if last:
                self._chunked = None
        self._sort(engine)
        taken = 0
        for request in self._waiting:
            if chunk <= 0 or most <= 0 or len(running) + len(batch.pieces) >= engine.machine.running:
                break
            found, _ = cache.match(request.spans, request.known - 1)
            tokens = request.known - found
            # What the request finds in the tree can no longer be evicted for it.
            if tokens + request.limit > free - found and (batch.pieces or running):
                break
            engine.admit(request)
            tokens = min(request.known - request.computed, chunk)
            last = request.computed + tokens == request.known
            batch.pieces.append(PiecePlan(request, request.computed, tokens, last))
            free -= found + tokens + (request.limit if last else 0)
            chunk, most = chunk - tokens, most - tokens
            taken += 1
            if not last:
                self._chunked = request
                break
        del self._waiting[:taken]
        return batch

    def _sort(self, engine: Engine) -> None:
        if self.settings.priorities:
            self._waiting.sort(key=lambda request: (request.urgency, request.order))
        elif self.settings.lpm and len(self._waiting) <= LPM_MOST:
            match = engine.cache.match
            self._waiting.sort(key=lambda request: -match(request.spans, request.known - 1)[0])
