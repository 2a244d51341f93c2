"""Starting an engine at the terminal: progress in place of SGLang's log."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.markup import escape

from sglang_ext.driver.engine import Engine
from sglang_ext.driver.engine_log import EngineLog


@contextmanager
def started(engine: Engine, log: EngineLog | None) -> Iterator[Engine]:
    """`engine`, started with its progress on standard error, and ended afterwards.

    Args:
        log: takes SGLang's output; None for a server, which has its own.
    """
    try:
        with loading(log, "starting SGLang"):
            engine.start()
        yield engine
    finally:
        engine.close()


@contextmanager
def loading(log: EngineLog | None, doing: str) -> Iterator[None]:
    """Work that may import SGLang: what that prints goes to `log`, `doing` stands on standard error; None: neither."""
    if log is None:
        yield
        return
    with log.captured() as terminal, _progress(log, terminal, doing):
        yield


@contextmanager
def _progress(log: EngineLog, terminal: IO[str], doing: str) -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(log, terminal, doing, done), daemon=True)
    if not log.verbose:
        thread.start()
    try:
        yield
    finally:
        done.set()
        if not log.verbose:
            thread.join()


def _show(log: EngineLog, terminal: IO[str], doing: str, done: threading.Event) -> None:
    """On a terminal a spinner with the log's last line, else one line."""
    begin = time.monotonic()
    console = Console(file=terminal)
    if not console.is_terminal:
        console.print(f"{doing} ...")
        return
    with console.status(doing) as status:
        while not done.wait(0.25):
            line = escape(log.tail(1).strip()[:60])
            status.update(f"{doing}, {time.monotonic() - begin:.0f} s  [dim]{line}")
