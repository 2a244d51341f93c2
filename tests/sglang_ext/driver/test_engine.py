"""Starting and ending an engine, without a model."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from grape_dsl.workflow import Workflow
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.errors import EngineError
from tests.sglang_ext.fake_engine import FakeEngine


def answers(prompt: str) -> str:
    return "yes"


def test_an_engine_that_cannot_be_interrupted_does_not_hold_its_user(
    tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the loop's thread is busy starting the engine."""
    interrupted = threading.Event()

    class Slow(FakeEngine):
        async def start(self) -> Any:
            time.sleep(3)

        def interrupt(self) -> None:
            interrupted.set()

    def ctrl_c(self: Any, timeout: Any = None) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("sglang_ext.driver.engine._PATIENCE", 0.1)
    monkeypatch.setattr("concurrent.futures.Future.result", ctrl_c)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Engine(client=Slow(tokenizer_path, answers)).start()
    assert interrupted.is_set() and time.monotonic() - begin < 2


def test_an_engine_outside_its_block(tokenizer_path: Path, chain: Workflow) -> None:
    engine = Engine(client=FakeEngine(tokenizer_path, answers))
    with pytest.raises(EngineError, match="not running"):
        engine.run(chain, question="q")
    with engine:
        with pytest.raises(EngineError, match="already"):
            engine.start()
        engine.run(chain, question="q")
    engine.close()
    with pytest.raises(EngineError, match="not running"):
        engine.run(chain, question="q")
    with engine:  # it can be started anew
        assert engine.run(chain, question="q").ok
