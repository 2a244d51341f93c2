"""SGLang's own settings: its flags parsed by its own parser, and what Grape sets where the user does not."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from sglang_ext.driver.errors import InputError
from sglang_ext.driver.sglang_loading import load_sglang

# Of a machine without an accelerator, beside what the platform sets: a prefill rides along with decodes.
# The platform cannot set it, since SGLang's flag has no third state for "not given".
CPU_DEFAULTS: Mapping[str, Any] = {"enable_mixed_chunk": True}
# What the driver relies on or would have to ignore.
REFUSED: Mapping[str, str] = {
    "chat_template": "Grape renders the chat template that lies with the tokenizer",
    "skip_tokenizer_init": "stop strings need the tokenizer",
    "custom_sigquit_handler": "Grape watches the engine's processes itself",
    "incremental_streaming_output": "a finished task's figures do not pass through it",
    "is_embedding": "workflows need a model that generates",
}


def parse_flags(flags: Sequence[str]) -> dict[str, Any]:
    """SGLang's flags as keyword arguments of `ServerArgs`: only those that were given.

    Raises:
        InputError: an unknown flag or a value of the wrong type.
    """
    if not flags:
        return {}
    load_sglang()
    from sglang.srt.server_args import ServerArgs

    parser = _Parser(prog="grape run ... --", add_help=False, allow_abbrev=False)
    ServerArgs.add_cli_args(parser)
    argv = list(flags)
    if any(flag.split("=")[0] == "--config" for flag in argv):
        from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger

        argv = ConfigArgumentMerger(parser).merge_config_with_args(argv)
    for action in parser._actions:
        action.default, action.required = argparse.SUPPRESS, False
    given = vars(parser.parse_args(argv))
    given.pop("config", None)
    if "radix_eviction_policy" in given:
        given["_radix_eviction_policy_explicitly_set"] = True
    return given


def with_defaults(model: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `ServerArgs` for `model`: what was given, Grape's defaults for the rest.

    Raises:
        InputError: a setting that contradicts Grape's use of the engine.
    """
    load_sglang()
    from sglang.srt.platforms import current_platform

    for name, reason in REFUSED.items():
        if given.get(name):
            raise InputError(f"SGLang's {name} = {given[name]!r} is not supported: {reason}")
    if given.get("model_path", model) != model:
        raise InputError(f"two models are named: {model!r} and SGLang's model_path = {given['model_path']!r}; name one")
    defaults = dict(CPU_DEFAULTS) if current_platform.device_type == "cpu" else {}
    return {"log_level": "info", **defaults, **given, "model_path": model}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"SGLang does not take these flags: {message}")
