"""Starting an engine at the terminal: progress in place of SGLang's log."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from sglang_ext import embedded_model
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.engine_log import EngineLog
from sglang_ext.embedded_model import Step


def fetch_embedded_model(console: Console) -> str:
    """The embedded model's folder; the first time it is made, with a progress bar. Raises EmbeddedModelError."""
    if embedded_model.folder().is_dir():
        return str(embedded_model.ensure())
    columns = (TextColumn("embedded model: {task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, console=console, transient=True) as bars:
        rows: dict[Step, TaskID] = {}

        def show(step: Step, done: int, total: int) -> None:
            if step not in rows:
                rows[step] = bars.add_task(step, total=total or None)
            bars.update(rows[step], completed=done, total=total or None)

        folder = embedded_model.ensure(show)
    console.print(f"embedded model: {folder}", highlight=False, soft_wrap=True)
    return str(folder)


@contextmanager
def started(engine: Engine, log: EngineLog | None) -> Iterator[Engine]:
    """`engine`, started with its progress on standard error, and ended afterwards.

    Args:
        log: takes SGLang's output; None for a server, which has its own.
    """
    try:
        if log is None:
            engine.start()
        else:
            with log.captured() as terminal, _progress(log, terminal):
                engine.start()
        yield engine
    finally:
        engine.close()


@contextmanager
def _progress(log: EngineLog, terminal: IO[str]) -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(log, terminal, done), daemon=True)
    if not log.verbose:
        thread.start()
    try:
        yield
    finally:
        done.set()
        if not log.verbose:
            thread.join()


def _show(log: EngineLog, terminal: IO[str], done: threading.Event) -> None:
    """On a terminal a spinner with the log's last line, else one line."""
    begin = time.monotonic()
    console = Console(file=terminal)
    if not console.is_terminal:
        console.print("starting SGLang ...")
        return
    with console.status("starting SGLang") as status:
        while not done.wait(0.25):
            line = escape(log.tail(1).strip()[:60])
            status.update(f"starting SGLang, {time.monotonic() - begin:.0f} s  [dim]{line}")
