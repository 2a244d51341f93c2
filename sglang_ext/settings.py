"""Settings of the runtime, read from `GRAPE_*` environment variables in each process that needs them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from grape_dsl.diagnostics import nearest
from sglang_ext.latency_bound import read_bound

_PREFIX = "GRAPE_"
CACHE_DIR = "GRAPE_CACHE_DIR"
API_KEY = "GRAPE_API_KEY"
"""A server's API key."""


class SettingsError(ValueError):
    """A `GRAPE_*` variable with a value that cannot be used."""


class Streaming(StrEnum):
    """How much of a prompt is prefilled early.

    `on`: all that is known, an upstream's tokens while it decodes included. `static`: only the fixed
    text before the first hole. `off`: nothing.
    """

    ON = "on"
    STATIC = "static"
    OFF = "off"


class Switch(StrEnum):
    ON = "on"
    OFF = "off"


class CpuKernel(StrEnum):
    """`auto`: compiled on this machine if it can be."""

    AUTO = "auto"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of the engine's extensions; field `x_y` is read from `GRAPE_X_Y`.

    Args:
        policy: the scheduling policy, by name.
        policy_off: parts of it that are switched off, a comma list of names.
        eviction: who gives KV back first under pressure, by name.
        profile: the measured cost of steps that a policy starts from: `auto`, one of this engine in the cache
            folder; the path of a file; `off`, none.
        slo_ttft, slo_tbt: latency objectives of requests without their own, such as `250ms`, `1.5s` or `3x`
            (unloaded decode steps); empty means none.
        prefill_budget: tokens of prefill per step beside decodes, complete prompts included, in the policy
            `budget`; early work takes what they leave.
        max_held_rows: tasks that may hold KV before they run.
        kv_reserve: share of the free KV that early prefill leaves alone.
        max_tasks: tasks that one run may have.
        max_held: tasks of all runs that may wait for outputs; more are refused.
        run_age: seconds after its first task's arrival at which a run that has not ended fails.
        upstream_timeout: seconds after which a task fails whose upstream was never submitted.
        lapse: seconds without a new prompt token after which a waiting task gives its KV back.
        event_log: file that gets one JSON line per event of the scheduler; empty means none.
        cpu_packed_linear: linear layers through oneDNN with weights packed for it; off: as torch has them.
        cpu_fused_ops: the CPU platform's own norms, rotary embedding and activations; off: SGLang's. The
            dense stack is made of them, so it is off with them.
        cpu_stack: the layers of dense models as one loop; off: SGLang's modules.
        cpu_kernel: attention by C code that is compiled at first use, where there is a compiler; off: by torch.
        cpu_overlap: overlap scheduling on the CPU platform, as it is on an accelerator.
    """

    streaming: Streaming = Streaming.ON
    policy: str = "deadline"
    policy_off: str = ""
    eviction: str = "distance"
    profile: str = "auto"
    slo_ttft: str = ""
    slo_tbt: str = ""
    prefill_budget: int = 64
    max_held_rows: int = 64
    kv_reserve: float = 0.25
    max_tasks: int = 10_000
    max_held: int = 4096
    run_age: float = 3600.0
    upstream_timeout: float = 60.0
    lapse: float = 30.0
    event_log: str = ""
    cpu_packed_linear: Switch = Switch.ON
    cpu_fused_ops: Switch = Switch.ON
    cpu_stack: Switch = Switch.ON
    cpu_kernel: CpuKernel = CpuKernel.AUTO
    cpu_overlap: Switch = Switch.OFF

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> EngineSettings:
        """Read the settings; raises SettingsError naming the variable and what it may hold."""
        values: dict[str, Any] = {}
        for setting in fields(cls):
            name = _variable(setting.name)
            text = environ.get(name)
            if text is not None:
                values[setting.name] = _read(name, text, type(setting.default))
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        return {name: str(v) if isinstance(v, StrEnum) else v for name, v in asdict(self).items()}


def unknown_settings(environ: Mapping[str, str] = os.environ) -> list[str]:
    """What to say of each `GRAPE_*` variable that nothing reads, with the nearest names that are read."""
    known = {CACHE_DIR, API_KEY, *(_variable(setting.name) for setting in fields(EngineSettings))}
    return [
        f"{name} is set, but Grape has no such setting; {_hint(name, known)}"
        for name in sorted(environ)
        if name.startswith(_PREFIX) and name not in known
    ]


def _hint(name: str, known: set[str]) -> str:
    # The prefix that all share would make any two names look alike.
    close = nearest(name.removeprefix(_PREFIX), sorted(each.removeprefix(_PREFIX) for each in known))
    if close:
        return f"did you mean {' or '.join(_PREFIX + each for each in close)}?"
    return f"known settings: {', '.join(sorted(known))}"


def _variable(setting: str) -> str:
    return f"{_PREFIX}{setting.upper()}"


def _read(name: str, text: str, kind: type) -> Any:
    try:
        value = kind(text)
    except ValueError:
        choices = ", ".join(kind) if issubclass(kind, StrEnum) else ""
        wanted = {int: "a whole number", float: "a number"}.get(kind) or f"one of {choices}"
        raise SettingsError(f"{name}={text!r}: it takes {wanted}") from None
    if kind in (int, float) and not value >= 0:
        raise SettingsError(f"{name}={text!r}: it takes a number of at least 0")
    if name.startswith("GRAPE_SLO_"):
        try:
            read_bound(text)
        except ValueError as error:
            raise SettingsError(f"{name}={text!r}: {error}") from None
    if name == "GRAPE_KV_RESERVE" and value > 1:
        raise SettingsError(f"{name}={text!r}: it takes a share from 0 to 1")
    return value


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where Grape keeps what it can make again: `GRAPE_CACHE_DIR`, else `grape` in the user's cache folder.

    The folder need not exist yet. A relative `XDG_CACHE_HOME` is ignored, as its specification asks.
    """
    own = environ.get(CACHE_DIR)
    if own:
        return Path(own).expanduser().absolute()
    user = Path(environ.get("XDG_CACHE_HOME") or "")
    return (user if user.is_absolute() else Path.home() / ".cache") / "grape"
