"""A tokenizer is loaded once in a process: SGLang's scheduler and its worker load one each, a second or two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_loaded: dict[Any, Any] = {}


def load_once(load: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `load` gave for the same arguments before, else what it gives now."""
    key = (args, tuple(sorted(kwargs.items())))
    try:
        hash(key)
    except TypeError:
        return load(*args, **kwargs)
    if key not in _loaded:
        _loaded[key] = load(*args, **kwargs)
    return _loaded[key]
