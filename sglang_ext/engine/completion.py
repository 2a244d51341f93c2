"""Checks of a prompt that was completed inside the engine: those that any request passes at its door."""

from __future__ import annotations

from typing import Any

from sglang_ext.engine.task_request import TaskRequest


def too_long(scheduler: Any, req: TaskRequest) -> str | None:
    """What is wrong as soon as it is certain, though holes are open; None if nothing is.

    The same limits as SGLang's: the context length for prompt and answer together, the KV pool for
    the prompt.
    """
    task = req.task
    length = task.certain_length
    context = scheduler.model_config.context_len
    asked = req.asked_max_new_tokens or 0
    if length + asked > context:
        return (
            f"its prompt has {length} tokens{'' if task.complete else ' or more'} and max_tokens is {asked}, "
            f"together more than the model's context length of {context}; shorten what it reads, or max_tokens"
        )
    if length >= scheduler.max_req_input_len:
        return (
            f"its prompt has {length} tokens{'' if task.complete else ' or more'}, "
            f"the engine takes prompts below {scheduler.max_req_input_len}; shorten what it reads, "
            "or start the engine with a larger --max-total-tokens"
        )
    return None


def room(scheduler: Any, req: TaskRequest) -> int:
    """Tokens that can still come before it is too long; negative if it is."""
    context = scheduler.model_config.context_len - (req.asked_max_new_tokens or 0)
    return int(min(context, scheduler.max_req_input_len - 1)) - req.task.certain_length


def complete_prompt(scheduler: Any, req: TaskRequest) -> str | None:
    """Set what depends on the whole prompt; returns what is wrong with it, or None."""
    length = len(req.origin_input_ids)
    if length == 0:
        return "its prompt is empty: everything it reads came out empty; put some text around it"
    req.sampling_params.max_new_tokens = req.asked_max_new_tokens
    scheduler.init_req_max_new_tokens(req)
    if req.to_finish is not None:
        return str(req.to_finish.message)
    if req.sampling_params.max_new_tokens == 0 and req.asked_max_new_tokens != 0:
        return f"its prompt of {length} tokens leaves no room in the KV pool for a single output token"
    if req.asked_logprob_start is not None:
        req.logprob_start_len = req.asked_logprob_start
    else:
        # Of output tokens only; SGLang counts where they start from the prompt's end.
        req.logprob_start_len = length if req.return_logprob else -1
    return None
