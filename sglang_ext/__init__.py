"""Grape's runtime on SGLang.

    import sglang_ext

    with sglang_ext.Engine() as engine:
        record = engine.run(workflow, question="Why is the sky blue?")

Names are loaded when they are used, since the driver's take a moment and SGLang's processes need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglang_ext.driver import events
    from sglang_ext.driver.engine import Engine
    from sglang_ext.driver.errors import EngineError, InputError, RunFailedError
    from sglang_ext.driver.record import ErrorKind, Record, RunError, TaskRecord

__all__ = [
    "Engine",
    "EngineError",
    "ErrorKind",
    "InputError",
    "Record",
    "RunError",
    "RunFailedError",
    "TaskRecord",
    "events",
]

_HOMES = {
    "Engine": "engine",
    "EngineError": "errors",
    "InputError": "errors",
    "RunFailedError": "errors",
    "ErrorKind": "record",
    "Record": "record",
    "RunError": "record",
    "TaskRecord": "record",
}


def __getattr__(name: str) -> Any:
    if name == "events":
        return import_module("sglang_ext.driver.events")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"sglang_ext.driver.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
