"""`grape run` and its neighbours on real engines."""

from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.engine.server import Server

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FLOW = """
workflow short
add_variable(topic, InputVar)
add_variable(note, IntermediateVar)
add_variable(answer, OutputVar)
add_task(write, prompt = "Write about {{topic}}.", task_output = note, max_tokens = 40, temperature = 0)
add_task(reply, prompt = "Read this and reply in one line: {{note}} Reply:", task_output = answer,
  max_tokens = 12, temperature = 0)
"""


def grape(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "grape_dsl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, cwd=ROOT)


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    path = tmp_path / "short.flow"
    path.write_text(FLOW)
    return path


def run_on(server: Server, flow: Path, *more: str) -> list[dict[str, Any]]:
    done = grape("run", str(flow), "--url", server.url, "--json", *more)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_server_started_the_usual_way(engine: Server, flow: Path) -> None:
    """Over --url: streamed and not, the same ids; and what was prefilled early is in the record."""
    topic = ["--input", "topic=old bridges"]
    (streamed,) = run_on(engine, flow, *topic, "--edge-weight", "4")
    (plain,) = run_on(engine, flow, *topic, "--no-streaming")
    for name in ("write", "reply"):
        assert streamed["tasks"][name]["output_ids"] == plain["tasks"][name]["output_ids"], name
    assert streamed["outputs"] == plain["outputs"]
    reply = streamed["tasks"]["reply"]
    assert reply["early_chunks"] >= 2
    written = len(streamed["tasks"]["write"]["output_ids"])
    behind = reply["prompt_tokens"] - reply["cached_tokens"] - reply["early_tokens"]
    assert written >= 30
    assert behind < written
    assert plain["tasks"]["reply"]["early_chunks"] == 0


def test_many_runs_from_a_file(engine: Server, flow: Path, tmp_path: Path) -> None:
    topics = ["boats", "bread", "rain", "stone", "wind"]
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text("".join(json.dumps({"topic": topic}) + "\n" for topic in topics))
    records = run_on(engine, flow, "--inputs", str(inputs), "--jobs", "5")
    assert sorted(record["run"]["index"] for record in records) == [0, 1, 2, 3, 4]
    assert len({record["run"]["id"] for record in records}) == 5


def test_a_stock_server_is_refused(stock: Server, flow: Path) -> None:
    done = grape("run", str(flow), "--url", stock.url, "--input", "topic=x")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "plugin" in done.stderr.lower()


def test_doctor_sees_the_installation() -> None:
    done = grape("doctor", "--json")
    report = json.loads(done.stdout)
    assert "0.5.23" in json.dumps(report)


def test_interrupt_leaves_nothing_behind(tiny_model: Path, flow: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "grape_dsl", "run", str(flow), "--input", "topic=x", "--model", str(tiny_model)]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started = time.monotonic()
    process = subprocess.Popen(
        [*command, "--", "--dtype", "float32"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)},
    )
    family: list[psutil.Process] = []
    # The scheduler and the detokenizer.
    while len(family) < 2 and time.monotonic() - started < 120 and process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.2)
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    _, alive = psutil.wait_procs(family, timeout=15)
    assert not alive, alive
    # CUTLASS keeps a cache there for each user.
    assert not [left for left in temporary.iterdir() if left.name != getpass.getuser()]
