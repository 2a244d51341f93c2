"""What an engine says of the profile that its policy starts from, as a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def profile_line(plugin: Mapping[str, Any] | None) -> str:
    """Args: plugin: its part of the engine's internal state; None: not loaded."""
    profile: Mapping[str, Any] = (plugin or {}).get("profile") or {}
    if not profile.get("file"):
        return f"none ({profile.get('reason') or 'the engine does not say'})"
    error = profile.get("errors", {}).get("all")
    return f"{profile['file']}" + ("" if error is None else f" (mean error {error:.1%})")
