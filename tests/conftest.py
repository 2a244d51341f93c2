"""Fixtures for several packages."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

# Started in the background by a shell, a process ignores Ctrl-C, and so do the commands that tests send one to.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """The embedded model's folder in the user's own cache; fetched the first time that any test wants it."""
    pytest.importorskip("gguf", reason="the embedded model needs the extra `sglang`")
    from sglang_ext.embedded_model import ensure

    return ensure()
