"""SGLang's queue order with growing requests kept out of it."""

from __future__ import annotations

from typing import Any

from sglang_ext.engine.task_request import TaskRequest


class TaskAwarePolicy:
    """SGLang's schedule policy over ordinary requests alone.

    Complete prompts stay in front of them and early pieces behind. SGLang's own order would also
    match a growing request against the tree, which overwrites how much of its row is filled.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def calc_priority(self, waiting_queue: list[Any], *args: Any, **kwargs: Any) -> None:
        growing = [req for req in waiting_queue if isinstance(req, TaskRequest) and req.growing]
        if not growing:
            self._inner.calc_priority(waiting_queue, *args, **kwargs)
            return
        ordinary = [req for req in waiting_queue if not (isinstance(req, TaskRequest) and req.growing)]
        self._inner.calc_priority(ordinary, *args, **kwargs)
        urgent = [req for req in growing if req.task.complete]
        early = [req for req in growing if not req.task.complete]
        waiting_queue[:] = [*urgent, *ordinary, *early]
