"""A task's options as SGLang's sampling parameters."""

from __future__ import annotations

from typing import Any

from grape_dsl.task import Options
from sglang_ext.driver.errors import InputError

DEFAULT_MAX_TOKENS = 256


def sampling_params(task: str, options: Options) -> dict[str, Any]:
    """SGLang's `sampling_params` of a task.

    What the task does not say is left to SGLang (temperature 1, top_p 1), but for the length:
    `DEFAULT_MAX_TOKENS`.

    Raises:
        InputError: `seed`, which SGLang takes into account in its deterministic mode only.
    """
    if options.seed is not None:
        raise InputError(
            f"task {task!r}: seed = {options.seed} is not supported: the engine would ignore it, since SGLang uses "
            "seeds in its deterministic mode only; leave seed out, or set temperature = 0 for repeatable outputs"
        )
    given = {
        "max_new_tokens": DEFAULT_MAX_TOKENS if options.max_tokens is None else options.max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop": list(options.stop) if options.stop else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def logprob_count(options: Options) -> int | None:
    """How many alternatives per output token to ask for; None: no logprobs."""
    if options.logprobs is None or options.logprobs is False:
        return None
    return 0 if options.logprobs is True else options.logprobs
