"""The plugin: what SGLang calls in each of its processes to take the extension in."""

from __future__ import annotations

import logging
from importlib.metadata import version

SUPPORTED_SGLANG = "0.5.23"

# Every target that is hooked; doctor and the engine's internal state report each one.
HOOKS = ("sglang.srt.managers.scheduler.Scheduler",)

logger = logging.getLogger(__name__)


def register() -> None:
    """Hook GrapeScheduler in; on another SGLang version do nothing and say so."""
    found = version("sglang")
    if found != SUPPORTED_SGLANG:
        logger.warning(
            "Grape is off: it is tested with sglang %s, this is %s. Install sglang==%s to run workflows.",
            SUPPORTED_SGLANG,
            found,
            SUPPORTED_SGLANG,
        )
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from sglang_ext.engine.scheduler import GrapeScheduler

    (target,) = HOOKS
    HookRegistry.register(target, GrapeScheduler, HookType.REPLACE)
