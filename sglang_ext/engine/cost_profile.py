"""The measured profile that an engine's policy starts from; each rank takes the lead rank's."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import torch

from sglang_ext.engine.cpu.machine import processor
from sglang_ext.engine.cpu.native.library import native_library
from sglang_ext.policy.online_fit import OnlineFit, guess
from sglang_ext.policy.step_times import StepTimes
from sglang_ext.profile.engine_key import EngineKey
from sglang_ext.profile.store import OFF, Choice, ProfileError, choose
from sglang_ext.settings import EngineSettings, SettingsError

_CPU_PARTS = ("cpu_packed_linear", "cpu_fused_ops", "cpu_stack")


def pick(scheduler: Any, setting: str) -> Choice:
    """What GRAPE_PROFILE means here. Every rank must call it, in the same order.

    Raises:
        SettingsError: on every rank, where a file that was named does not fit.
    """
    if setting == OFF:
        return Choice(reason="GRAPE_PROFILE=off")
    group = scheduler.tp_group
    lead = group.rank_in_group == 0
    choice, message = _pick(scheduler, setting) if lead else (Choice(), "")
    if group.world_size > 1:
        # Ranks of other machines may have other files, and all must decide alike.
        choice, message = group.broadcast_object((choice, message) if lead else None, src=0)
    if message:
        raise SettingsError(f"GRAPE_PROFILE={setting!r}: {message}")
    return choice


def _pick(scheduler: Any, setting: str) -> tuple[Choice, str]:
    try:
        return choose(setting, key_of(scheduler)), ""
    except ProfileError as error:
        return Choice(), str(error)


def step_times(choice: Choice) -> StepTimes:
    """Expected times of steps by a profile; without one they are learned from a cautious guess."""
    if choice.profile is not None:
        return StepTimes(choice.profile.cost)
    start = guess()
    return StepTimes(start, OnlineFit(start))


def described(choice: Choice) -> dict[str, Any]:
    """For the engine's internal state: the profile's file and its stored errors, or why there is none."""
    if choice.profile is None:
        return {"file": None, "reason": choice.reason}
    return {"file": str(choice.file), "errors": choice.profile.cost.errors}


def key_of(scheduler: Any) -> EngineKey:
    """The key of a scheduler's engine; SGLang's own scheduler has one too."""
    # SGLang leaves its flags as they were given; what it makes of them stands in its objects.
    model, runner, device = scheduler.model_config, scheduler.tp_worker.model_runner, str(scheduler.device)
    attention = dict.fromkeys((runner.prefill_attention_backend_str, runner.decode_attention_backend_str))
    return EngineKey(
        model=PurePath(str(model.model_path)).name,
        shape=_shape(model),
        dtype=str(model.dtype).removeprefix("torch."),
        device=device,
        processor=processor() if device == "cpu" else str(torch.get_device_module(device).get_device_name()),
        threads=torch.get_num_threads(),
        ranks=int(scheduler.tp_size),
        attention="/".join(attention),
        options=tuple(_options(scheduler, runner, device)),
        sglang=version("sglang"),
        torch=torch.__version__,
    )


def _shape(model: Any) -> str:
    config = model.hf_text_config
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
    sizes = [str(getattr(config, name, "?")) for name in (*names, "vocab_size")]
    return " ".join([*(getattr(model.hf_config, "architectures", None) or ["?"]), *sizes])


def _options(scheduler: Any, runner: Any, device: str) -> list[str]:
    found, model = [], scheduler.model_config
    if model.quantization:
        found.append(f"quantization {model.quantization}")
    if runner.kv_cache_dtype != model.dtype:
        found.append(f"KV {str(runner.kv_cache_dtype).removeprefix('torch.')}")
    if not scheduler.enable_overlap:
        found.append("no overlap")
    if device == "cpu":
        settings = EngineSettings.from_environment().as_dict()
        found += [f"{name} off" for name in _CPU_PARTS if settings[name] == "off"]
        if native_library() is None:
            found.append("attention not compiled")
    return found
