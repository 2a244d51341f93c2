"""Fixtures for several packages."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """The embedded model's folder in the user's own cache; fetched the first time that any test wants it."""
    pytest.importorskip("gguf", reason="the embedded model needs the extra `sglang`")
    from sglang_ext.embedded_model import ensure

    return ensure()
