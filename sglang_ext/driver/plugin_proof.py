"""Proof that an engine runs the plugin: SGLang only logs a plugin that fails, so the driver asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sglang_ext.driver.errors import EngineError

_WHERE = "`grape doctor` shows what is installed and which settings switch plugins off"


def plugin_state(states: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The plugin's part of the first scheduler's internal state; None where it is not loaded."""
    return states[0].get("grape") if states else None


def require_plugin(engine: str, states: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The plugin's state, the same in each scheduler.

    Raises:
        EngineError: a scheduler has no plugin, or one of its hooks is not applied; the message names them.
    """
    if not states:
        raise EngineError(f"the engine {engine} gives no internal state, so the Grape plugin cannot be seen. {_WHERE}.")
    for rank, state in enumerate(states):
        of = f" (scheduler {rank})" if len(states) > 1 else ""
        own = state.get("grape")
        if own is None:
            raise EngineError(
                f"the engine {engine} runs without the Grape plugin{of}: its internal state has no key 'grape'. "
                f"Start it in an environment that has grape-dsl[sglang] installed; {_WHERE}."
            )
        missing = sorted(name for name, applied in own.get("hooks", {}).items() if not applied)
        if missing or not own.get("applied"):
            what = f"its hooks {', '.join(missing)} are" if missing else "it is"
            raise EngineError(
                f"the Grape plugin {own.get('version')} is loaded in the engine {engine}{of}, but {what} not applied "
                f"on SGLang {own.get('sglang')}. {_WHERE}."
            )
    return states[0]["grape"]  # type: ignore[no-any-return]
