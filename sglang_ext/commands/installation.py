"""What is installed and set, and what of it would keep workflows from running. Starts no engine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any

from sglang_ext import embedded_model
from sglang_ext.engine.cpu.defaults import described
from sglang_ext.engine.cpu.native.library import described as native_described
from sglang_ext.engine.plugin import SUPPORTED_SGLANG
from sglang_ext.profile import store
from sglang_ext.settings import CpuKernel, EngineSettings, SettingsError, unknown_settings

DISTRIBUTION = "grape-dsl"
GENERAL = "sglang.srt.plugins"
PLATFORMS = "sglang.srt.platforms"
PLUGIN = "grape"
CPU_PLATFORM = "grape_cpu"


@dataclass(slots=True)
class Report:
    """What `grape doctor` shows.

    Args:
        device: `cpu`, or the accelerator's name.
        defaults: what is set without an accelerator where flags do not, with the reason; empty with one.
        profiles: how many there are, whatever engines they are of; only an engine knows which one fits it.
        plugins: by entry-point group, `NAME (DISTRIBUTION)` of each plugin that SGLang finds.
        problems: each a sentence that says what to do.
    """

    grape: str
    sglang: str | None
    supported_sglang: str
    python: str
    device: str
    cpus: int
    defaults: dict[str, str]
    plugins: dict[str, list[str]]
    settings: dict[str, Any]
    embedded_model: str
    embedded_model_folder: str
    profiles: int
    profiles_folder: str
    problems: list[str] = field(default_factory=list)


def look(environ: Mapping[str, str] = os.environ) -> Report:
    """Look at this environment; takes the seconds that importing torch does."""
    found = {group: list(entry_points(group=group)) for group in (PLATFORMS, GENERAL)}
    device = _device()
    settings, settings_problems = _settings(environ)
    return Report(
        grape=version(DISTRIBUTION),
        sglang=_version("sglang"),
        supported_sglang=SUPPORTED_SGLANG,
        python=platform.python_version(),
        device=device,
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        defaults=_defaults(environ, settings) if device == "cpu" else {},
        plugins={group: [_title(entry) for entry in entries] for group, entries in found.items()},
        settings=settings,
        embedded_model=embedded_model.state(),
        embedded_model_folder=str(embedded_model.folder()),
        profiles=len(store.stored()),
        profiles_folder=str(store.folder()),
        problems=[
            *_version_problems(_version("sglang")),
            *plugin_problems(found, environ, on_cpu=device == "cpu"),
            *settings_problems,
        ],
    )


def _defaults(environ: Mapping[str, str], settings: Mapping[str, Any]) -> dict[str, str]:
    defaults = described(environ=environ)
    if settings:
        defaults["attention"] = native_described(CpuKernel(settings["cpu_kernel"]))
    return defaults


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _title(entry: EntryPoint) -> str:
    return f"{entry.name} ({entry.dist.name if entry.dist else 'unknown'})"


def _device() -> str:
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name(0))
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return "cpu" if accelerator is None else str(accelerator.type)


def _version_problems(sglang: str | None) -> list[str]:
    if sglang is None:
        return ['SGLang is not installed. Install it with: pip install "grape-dsl[sglang]"']
    if sglang != SUPPORTED_SGLANG:
        return [
            f"SGLang {sglang} is installed; Grape is tested with {SUPPORTED_SGLANG} and applies nothing on another "
            f"version. Install sglang=={SUPPORTED_SGLANG}."
        ]
    return []


def plugin_problems(found: Mapping[str, list[EntryPoint]], environ: Mapping[str, str], *, on_cpu: bool) -> list[str]:
    """Why SGLang would not load Grape's plugins; it drops them without a word.

    Args:
        found: entry points by group.
    """
    problems = []
    needed = {PLUGIN: GENERAL} | ({CPU_PLATFORM: PLATFORMS} if on_cpu else {})
    for name, group in needed.items():
        if name not in {entry.name for entry in found[group]}:
            problems.append(
                f"the entry point {name!r} of group {group} is missing: {DISTRIBUTION}'s metadata is not installed in "
                f"{sys.prefix}. Install it with pip, a source tree on the path is not enough."
            )
    chosen = {name.strip() for name in environ.get("SGLANG_PLUGINS", "").split(",") if name.strip()}
    for name in needed if chosen else ():
        if name not in chosen:
            problems.append(
                f"SGLANG_PLUGINS={environ['SGLANG_PLUGINS']} leaves out the plugin {name!r}. "
                "Add it, or unset the variable."
            )
    selected = environ.get("SGLANG_PLATFORM")
    if selected and selected != CPU_PLATFORM:
        problems.append(
            f"SGLANG_PLATFORM={selected} makes SGLang drop all plugins of distributions whose platform is another one, "
            f"{DISTRIBUTION}'s scheduler plugin too. Unset it."
        )
    if environ.get("SGLANG_USE_CPU_ENGINE", "0").lower() in ("1", "true") and on_cpu:
        problems.append(
            "SGLANG_USE_CPU_ENGINE is set: SGLang's own CPU engine replaces Grape's platform and needs a CPU build of "
            "sgl-kernel. Unset it unless you have that."
        )
    return problems


def _settings(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    problems = unknown_settings(environ)
    try:
        return EngineSettings.from_environment(environ).as_dict(), problems
    except SettingsError as error:
        return {}, [*problems, str(error)]
