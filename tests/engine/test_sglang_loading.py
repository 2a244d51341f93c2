"""How an engine's processes are started: forked only where nothing has computed in this one."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sglang.srt.platforms import current_platform

from sglang_ext.driver import sglang_loading

PROGRAM = """
import torch
from sglang_ext.driver.sglang_loading import _native_threads
before = _native_threads()
torch.ones(2000, 2000) @ torch.ones(2000, 2000)
print(before is not None and _native_threads() > before)
"""


@pytest.mark.parametrize(("before", "now", "method"), [(3, 3, "fork"), (3, 4, "spawn"), (None, 3, "spawn")])
def test_the_method(before: int | None, now: int, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sglang_loading, "_own_threads", before)
    monkeypatch.setattr(sglang_loading, "_native_threads", lambda: now)
    assert sglang_loading.start_method() == (method if current_platform.device_type == "cpu" else "spawn")


def test_loading_again_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sglang_loading.load_sglang()
    monkeypatch.setattr(sglang_loading, "_own_threads", 5)
    gc.disable()
    try:
        sglang_loading.load_sglang()
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert sglang_loading._own_threads == 5


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads cannot be told here")
def test_threads_of_a_pool_are_seen() -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr[-2000:]
