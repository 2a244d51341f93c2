"""PiecewiseRequest: an SGLang request whose prompt a plan can prefill in pieces, several such side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sglang.srt.managers.schedule_batch import Req

from sglang_ext.policy.snapshot import Prefill
from sglang_ext.tasks.hint import Slo


@dataclass(slots=True)
class Piece:
    """A stretch of the prompt that one step prefills: ids [start, end), of which `streamed` came through a hole."""

    step: int
    start: int
    end: int
    streamed: int
    launched_s: float
    done_s: float | None = None


class PiecewiseRequest(Req):  # type: ignore[misc]
    """Every request that generates text is one.

    SGLang cuts one prompt at a time and keeps it at the head of all others. Here a prompt is **cut** when
    a plan has prefilled a part of it: it is in the extension's own table then, holds its KV, and goes
    back into SGLang's queue for the one step in which its next piece is launched.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Arrivals are numbered from 0 in one engine.
        self.arrival = 0
        # What a policy is told of it: its run, which is its own where it is no task, and its task's objectives.
        self.run_id: str = self.rid
        self.slo: Slo | None = None
        self.cut = False
        # A piece of it is in the batch that was launched last, and more is to come.
        self.middle_in_flight = False
        # The first step that found it ready since something of it was prefilled last; None: none has.
        self.waits_from: int | None = None
        # First step in which it may be launched again; a result of its given-up KV may be in flight.
        self.rests_until = 0
        # So much of its prompt is in the cache already, without a row of its own; None: not looked up.
        self.found_in_cache: int | None = None
        # What a policy was told of it while complete, and the first step in which what it was told is looked at anew.
        self.told: Prefill | None = None
        self.told_until = 0
        self.withdrawn = False
        self.pieces: list[Piece] = []
        # On the lead rank's clock: when it came, when its prompt was complete, when a piece of it was launched
        # and a token of it was seen last. None: not yet.
        self.arrived_s: float | None = None
        self.ready_s: float | None = None
        self.piece_s = 0.0
        self.token_s: float | None = None
        self._tokens_seen = 0
        # Output ids that its client was offered.
        self.streamed_ids = 0

    @property
    def growing(self) -> bool:
        """Whether it is a task that was not launched whole yet."""
        return False

    @property
    def in_pieces(self) -> bool:
        """Whether the extension's table has it between steps, and SGLang's queues do not."""
        return self.growing or self.cut

    @property
    def prompt_complete(self) -> bool:
        """Whether no hole of its prompt is open."""
        return True

    @property
    def fixed_prefix(self) -> int:
        """Tokens at the front that others may share, published as soon as they are computed."""
        return 0

    def see(self, now_s: float) -> None:
        """Note when it came and was complete, at the first step that has a time, and when new output became known."""
        if self.ready_s is None:
            if self.arrived_s is None:
                self.arrived_s = now_s
            if self.prompt_complete:
                self.ready_s = now_s
        tokens = len(self.output_ids)
        if tokens != self._tokens_seen:
            self._tokens_seen = tokens
            self.token_s = now_s

    def init_next_round_input(self, tree_cache: Any = None, cow_mamba: bool | None = None) -> None:
        # What it holds is in its own row: matching it against the tree again would lose the rest.
        if self.in_pieces and self.kv.holds_kv:
            tree_cache = None
        super().init_next_round_input(tree_cache, cow_mamba)
