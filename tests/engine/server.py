"""SGLang servers for tests, started the usual way: `python -m sglang.launch_server`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

START_LIMIT = 240.0


@dataclass
class Server:
    url: str
    log: Path
    event_log: Path
    process: subprocess.Popen[bytes]

    def state(self) -> dict[str, Any]:
        """The first scheduler's internal state."""
        info = httpx.get(f"{self.url}/server_info", timeout=30).json()
        state: dict[str, Any] = info["internal_states"][0]
        return state

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = self.state()["grape"]["counts"]
        return counts

    def events(self) -> list[dict[str, Any]]:
        if not self.event_log.exists():
            return []
        return [json.loads(line) for line in self.event_log.read_text().splitlines()]

    def alive(self) -> bool:
        return self.process.poll() is None

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


@contextmanager
def serve(
    model: Path,
    folder: Path,
    flags: Sequence[str] = (),
    *,
    stock: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A running server.

    Args:
        folder: where its log and its event log go.
        stock: without Grape's scheduler, on the same platform.
    """
    port = _free_port()
    folder.mkdir(parents=True, exist_ok=True)
    log, events = folder / "server.log", folder / "events.jsonl"
    # Passive waiting: threads of two engines on two cores would otherwise spin against each other.
    env = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "GRAPE_EVENT_LOG": str(events)}
    if stock:
        env["SGLANG_PLUGINS"] = "grape_cpu"
    # SGLang's own idle check raises instead of warning, so that a leak ends the server.
    # As on an accelerator, unless the flags say otherwise.
    env |= {"SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_IDLE": "1", "GRAPE_CPU_OVERLAP": "on", **(environment or {})}
    command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(model), "--port", str(port)]
    command += ["--dtype", "float32", "--sleep-on-idle", *flags]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True)
    server = Server(f"http://127.0.0.1:{port}", log, events, process)
    try:
        _wait_until_up(server)
        yield server
    finally:
        _stop(process)


def _wait_until_up(server: Server) -> None:
    until = time.monotonic() + START_LIMIT
    while time.monotonic() < until:
        if not server.alive():
            raise RuntimeError(f"the server ended while it started:\n{server.tail()}")
        try:
            if httpx.get(f"{server.url}/health", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.3)
    raise RuntimeError(f"the server did not start in {START_LIMIT} s:\n{server.tail()}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    import psutil

    try:
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        member.kill()
    psutil.wait_procs(family, timeout=20)
    process.wait(timeout=20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
