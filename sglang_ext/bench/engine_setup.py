"""How the engines of a benchmark are started, and what they say they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from sglang.srt.platforms import current_platform

from sglang_ext.bench.arms import EngineKind
from sglang_ext.bench.gap_record import EngineRecord
from sglang_ext.driver.engine_arguments import parse_flags, with_defaults
from sglang_ext.driver.engine_client import EngineInfo
from sglang_ext.driver.errors import EngineError, InputError
from sglang_ext.driver.plugin_proof import plugin_state, require_plugin
from sglang_ext.driver.server_engine import ServerEngine

# Enough for the largest chain several times; several engines share one device.
_POOL_TOKENS = 32768
# Set here: they make the difference between the engines, or are of each engine alone.
_OWN_FLAGS = ("enable_mixed_chunk", "sleep_on_idle", "model_path", "host", "port", "api_key")
_RESOLVED = (
    "device",
    "dtype",
    "attention_backend",
    "enable_mixed_chunk",
    "chunked_prefill_size",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "schedule_policy",
    "page_size",
    "tp_size",
    "max_total_num_tokens",
    "max_running_requests",
    "max_req_input_len",
)


@dataclass(frozen=True, slots=True)
class Launch:
    """What `serve` needs to start an engine."""

    flags: list[str]
    environment: dict[str, str]


class EngineSetup:
    """The settings that all engines of a run share.

    Args:
        flags: SGLang's own, for every engine.
        own: names of flags that this benchmark sets or relies on, beside those that every one does.
        pool: tokens of KV of each engine unless the flags say so; None: as the engine takes them by itself.

    Raises:
        InputError: a flag that SGLang does not know, or one that the benchmark sets.
    """

    def __init__(
        self, model: str, flags: Sequence[str], own: Sequence[str] = (), pool: int | None = _POOL_TOKENS
    ) -> None:
        given = parse_flags(flags)
        for name in (*_OWN_FLAGS, *own):
            if name in given:
                raise InputError(f"--{name.replace('_', '-')} is set by the benchmark itself; leave it out")
        settings = ({} if pool is None else {"max_total_tokens": pool}) | with_defaults(model, given)
        self.model = model
        self.on_cpu = current_platform.device_type == "cpu"
        self._flags = [
            "--sleep-on-idle",  # an engine at rest would otherwise spin beside the one that is measured
            *_as_flags({k: v for k, v in settings.items() if k not in given and k not in _OWN_FLAGS}),
            *flags,
        ]

    def launch(self, kind: EngineKind) -> Launch:
        flags = [*self._flags, *(["--enable-mixed-chunk"] if kind.mixed else []), *kind.flags]
        more = dict(kind.environment)
        if kind.streaming is not None:
            return Launch(flags, {"GRAPE_STREAMING": str(kind.streaming)} | more)
        # The filter covers platforms too, so a CPU keeps Grape's; elsewhere a name that matches nothing.
        return Launch(flags, {"SGLANG_PLUGINS": "grape_cpu" if self.on_cpu else "none"} | more)


@dataclass(frozen=True, slots=True)
class ConnectedEngine:
    source: ServerEngine
    info: EngineInfo
    record: EngineRecord


async def connect(kind: EngineKind, launch: Launch, url: str) -> ConnectedEngine:
    """Raises EngineError if the extension is not on where it should be, or is where it should not be."""
    source = ServerEngine(url)
    info = await source.start()
    plugin: Mapping[str, Any] | None = plugin_state(info.states)
    if kind.streaming is not None:
        plugin = require_plugin(f"{kind.name!r} of the benchmark", info.states)
    elif plugin is not None:
        raise EngineError(f"the engine {kind.name!r} should be stock SGLang, but Grape's scheduler plugin is loaded")
    async with httpx.AsyncClient() as client:
        answer = (await client.get(f"{url}/server_info", timeout=60)).json()
    return ConnectedEngine(
        source,
        info,
        EngineRecord(
            flags=launch.flags,
            environment=launch.environment,
            resolved={name: answer.get(name) for name in _RESOLVED},
            plugin=None if plugin is None else dict(plugin["settings"]),
        ),
    )


def _as_flags(settings: Mapping[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in settings.items():
        flag = "--" + name.replace("_", "-")
        flags += [flag] if value is True else [flag, str(value)]
    return flags
