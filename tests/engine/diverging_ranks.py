"""A plugin under which the second rank plans no prefill: what the check of ranks against each other must notice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any


def register() -> None:
    from sglang.srt.runtime_context import get_parallel

    from sglang_ext.policy.deadline import DeadlinePolicy

    whole = DeadlinePolicy.plan

    def plan(self: DeadlinePolicy, snapshot: Any) -> Any:
        made = whole(self, snapshot)
        return replace(made, pieces=()) if get_parallel().tp_rank else made

    DeadlinePolicy.plan = plan  # type: ignore[method-assign]
