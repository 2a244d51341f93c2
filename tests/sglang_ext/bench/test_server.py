"""The life of a server process, with a stand-in for Python that serves /health and has a child."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from sglang_ext.bench import server
from sglang_ext.bench.server import serve
from sglang_ext.driver.errors import EngineError

SCRIPT = """#!{python}
import http.server, os, subprocess, sys
port = int(sys.argv[sys.argv.index("--port") + 1])
if "--broken" in sys.argv:
    sys.exit("this model cannot be read")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, os.environ["SETTING"], flush=True)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass

http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "python"
    script.write_text(SCRIPT.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setattr(server.sys, "executable", str(script))
    return script


def runs(process: psutil.Process) -> bool:
    """The child of a child is reaped by init, in its own time."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_nothing_is_left_behind(python, tmp_path, error):
    log = tmp_path / "log"
    try:
        with serve([], {"SETTING": "of its own"}, log) as url:
            assert httpx.get(f"{url}/health").status_code == 200
            own, child, setting = log.read_text().split(maxsplit=2)
            assert setting.strip() == "of its own"
            family = [psutil.Process(int(pid)) for pid in (own, child)]
            if error is not None:
                raise error
    except KeyboardInterrupt:
        assert error is not None
    until = time.monotonic() + 10
    while any(runs(process) for process in family):
        assert time.monotonic() < until, family
        time.sleep(0.02)


def test_a_server_that_does_not_start_shows_its_log(python, tmp_path):
    with pytest.raises(EngineError, match="ended with code 1") as raised, serve(["--broken"], {}, tmp_path / "log"):
        pass
    assert "this model cannot be read" in raised.value.log_tail
