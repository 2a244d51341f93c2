"""The room of one step, handed out piece by piece: chunk, KV, rows and seats."""

from __future__ import annotations

import math

from sglang_ext.policy.snapshot import Piece, Prefill, Snapshot


class Allotment:
    """Pieces given so far, and what is left. Nothing given ever exceeds what the snapshot says there is.

    Args:
        reserve: share of the free KV that prompts which are not complete leave alone.
    """

    def __init__(self, snapshot: Snapshot, reserve: float) -> None:
        self._page = page = snapshot.page
        self._given: dict[str, int] = {}
        self.chunk = snapshot.chunk
        # Each decode writes one token: into its last page, or into a new one.
        new_pages = len(snapshot.decodes) if page == 1 else sum(d.context % page == 0 for d in snapshot.decodes)
        self._kv = snapshot.kv_free - new_pages * page
        self._early_kv = self._kv - math.ceil(snapshot.kv_free * reserve)
        self._rows = snapshot.rows_free
        self._seats = snapshot.seats_free

    def given(self, prefill: Prefill) -> int:
        """Tokens of a prompt that are in the step already."""
        return self._given.get(prefill.rid, 0)

    def takes(self, prefill: Prefill) -> bool:
        """Whether there is a row or seat for a prompt that is not in the step yet."""
        if prefill.complete:
            return self._seats > 0
        return prefill.has_row or self._rows > 0

    def most(self, prefill: Prefill) -> int:
        """The most tokens that a prompt can still get."""
        given = self._given.get(prefill.rid)
        if given is None:
            if not self.takes(prefill):
                return 0
            given = 0
        kv = self._kv if prefill.complete else min(self._kv, self._early_kv)
        if self._page > 1:
            # Whole pages, behind what the last one has left.
            kv = max(0, kv) // self._page * self._page + -(prefill.context + given) % self._page
        return max(0, min(prefill.pending - given, self.chunk, kv))

    def give(self, prefill: Prefill, tokens: int, up: bool = False) -> int:
        """Give a prompt up to `tokens` more; returns how many it got.

        With pages a cut piece ends at a page's end, the one below `tokens` or, with `up`, the one above.
        """
        most = self.most(prefill)
        tokens = self._whole(prefill, min(tokens, most), most, up)
        if tokens <= 0:
            return 0
        first = prefill.rid not in self._given
        given = self._given.get(prefill.rid, 0)
        self._given[prefill.rid] = given + tokens
        self.chunk -= tokens
        used = self._pages(prefill.context + given + tokens) - self._pages(prefill.context + given)
        self._kv -= used * self._page
        self._early_kv -= used * self._page
        if first:
            if prefill.complete:
                self._seats -= 1
            elif not prefill.has_row:
                self._rows -= 1
        return tokens

    def pieces(self) -> tuple[Piece, ...]:
        """What was given, in the order in which the prompts got their first tokens."""
        return tuple(Piece(rid, tokens) for rid, tokens in self._given.items())

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self._page)

    def _whole(self, prefill: Prefill, tokens: int, most: int, up: bool) -> int:
        given = self._given.get(prefill.rid, 0)
        if self._page == 1 or tokens <= 0 or given + tokens == prefill.pending:
            return tokens
        over = (prefill.context + given + tokens) % self._page
        if not over:
            return tokens
        above = tokens + self._page - over
        if up and above <= most:
            return above
        if up and most == prefill.pending - given:
            return most
        return tokens - over
