"""Proof that the extension is on: what the engine's internal state says of it."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sglang.srt.plugins.hook_registry import HookRegistry

from sglang_ext.engine.cost_profile import described, key_of
from sglang_ext.engine.plugin import HOOKS

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks


def internal_state(held: HeldTasks) -> dict[str, Any]:
    """The value of key `grape`: versions, hooks, settings, what its profile belongs to, live counters, decisions."""
    hooks = {target: target in HookRegistry._patched for target in HOOKS}
    return {
        "version": version("grape-dsl"),
        "sglang": version("sglang"),
        "applied": all(hooks.values()),
        "hooks": hooks,
        "settings": held.settings.as_dict(),
        "key": key_of(held.scheduler).model_dump(mode="json"),
        "profile": described(held.profile),
        "counts": held.counts(),
        "decisions": held.decisions.report(held.planner.meter),
    }
