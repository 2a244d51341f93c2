"""An SGLang server of our own on a free port, started the usual way, for as long as a `with` block."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from sglang_ext.driver.errors import EngineError

_START_SECONDS = 1800.0
_POLL_SECONDS = 0.3
_END_SECONDS = 20.0
_TAIL_LINES = 30


@contextmanager
def serve(
    flags: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    waiting: Callable[[], None] = lambda: None,
    module: Sequence[str] = ("sglang.launch_server",),
) -> Iterator[str]:
    """A running server; its processes are gone when the block ends.

    Args:
        flags: of `python -m sglang.launch_server`, without host and port.
        environment: variables beside this process's own.
        log: takes what the server prints.
        waiting: called again and again until the server answers.
        module: what `python -m` runs, with arguments of its own that stand before the flags.

    Yields:
        its URL.

    Raises:
        EngineError: it does not start; with the tail of its log.
    """
    port = _free_port()
    command = [sys.executable, "-m", *module, "--host", "127.0.0.1", "--port", str(port), *flags]
    with log.open("wb") as out:
        # A session of its own: Ctrl-C is answered here, not by each of its processes.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | environment,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url, log, waiting)
        yield url
    finally:
        _end(process)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path, waiting: Callable[[], None]) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise EngineError(f"the server ended with code {process.returncode} while it started", _tail(log))
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        waiting()
        time.sleep(_POLL_SECONDS)
    raise EngineError(f"the server did not start in {_START_SECONDS:.0f} s", _tail(log))


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])


def _end(process: subprocess.Popen[bytes]) -> None:
    """SGLang's processes stay in the session of the first, so that all can be reached even when that one is gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=_END_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
