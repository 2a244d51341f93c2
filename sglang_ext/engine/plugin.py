"""The plugin: what SGLang calls in each of its processes to take the extension in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from sglang_ext.settings import EngineSettings

SUPPORTED_SGLANG = "0.5.23"

# Every target that is hooked; doctor and the engine's internal state report each one.
SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
ROWS = "sglang.srt.mem_cache.kv_cache_configurator.KVCacheConfigurator._build_req_to_token_pool"
TOKENIZER = "sglang.srt.utils.hf_transformers.tokenizer.get_tokenizer"
HOOKS = (SCHEDULER, ROWS, TOKENIZER)

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

    from sglang_ext.engine.one_tokenizer import load_once
    from sglang_ext.engine.scheduler import GrapeScheduler

    HookRegistry.register(SCHEDULER, GrapeScheduler, HookType.REPLACE)
    HookRegistry.register(ROWS, add_rows, HookType.AROUND)
    HookRegistry.register(TOKENIZER, load_once, HookType.AROUND)


def add_rows(build: Callable[..., Any], configurator: Any, *, max_num_reqs: int) -> Any:
    """Give tasks that hold KV before they run rows of their own, beside those of the running requests."""
    return build(configurator, max_num_reqs=max_num_reqs + EngineSettings.from_environment().max_held_rows)
