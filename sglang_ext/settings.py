"""Settings of the runtime, read from `GRAPE_*` environment variables in each process that needs them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where Grape keeps what it can make again: `GRAPE_CACHE_DIR`, else `grape` in the user's cache folder.

    The folder need not exist yet. A relative `XDG_CACHE_HOME` is ignored, as its specification asks.
    """
    own = environ.get("GRAPE_CACHE_DIR")
    if own:
        return Path(own).expanduser().absolute()
    user = Path(environ.get("XDG_CACHE_HOME") or "")
    return (user if user.is_absolute() else Path.home() / ".cache") / "grape"
