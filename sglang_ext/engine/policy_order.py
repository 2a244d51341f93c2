"""SGLang's queue order with requests in pieces kept out of it."""

from __future__ import annotations

from typing import Any

from sglang_ext.engine.piecewise_request import PiecewiseRequest


class TaskAwarePolicy:
    """SGLang's schedule policy over ordinary requests alone, and only where no plan has given the order.

    Without a plan complete prompts stay in front of them and early pieces behind. SGLang's own order would
    also match a request in pieces against the tree, which overwrites how much of its row is filled.
    """

    def __init__(self, inner: Any, scheduler: Any) -> None:
        self._inner = inner
        self._scheduler = scheduler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def calc_priority(self, waiting_queue: list[Any], *args: Any, **kwargs: Any) -> None:
        if self._scheduler.held.planner.planned:
            return
        pieces = [req for req in waiting_queue if _in_pieces(req)]
        if not pieces:
            self._inner.calc_priority(waiting_queue, *args, **kwargs)
            return
        ordinary = [req for req in waiting_queue if not _in_pieces(req)]
        self._inner.calc_priority(ordinary, *args, **kwargs)
        urgent = [req for req in pieces if req.prompt_complete]
        early = [req for req in pieces if not req.prompt_complete]
        waiting_queue[:] = [*urgent, *ordinary, *early]


def _in_pieces(req: Any) -> bool:
    return isinstance(req, PiecewiseRequest) and req.in_pieces
