"""Where an engine's output goes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

PROGRAM = """
    import logging, os, subprocess, sys
    from sglang_ext.driver.engine_log import EngineLog

    log = EngineLog(verbose=sys.argv[1] == "verbose")
    with log.captured() as terminal:
        print("printed")
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
        logging.warning("logged")
        terminal.write("progress\\n")
    print("after")
    logging.warning("logged later")
    tail = log.tail()
    print([word in tail for word in ("printed", "child", "logged", "logged later", "progress", "after")])
    path = log.path
    log.close()
    print(path is None or not path.exists())
"""


def run(mode: str) -> tuple[str, str]:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), mode],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
        timeout=60,
        check=True,
    )
    return done.stdout, done.stderr


def test_a_file_takes_it_all() -> None:
    out, err = run("quiet")
    assert out == "after\n[True, True, True, True, False, False]\nTrue\n"
    assert err == "progress\n"


def test_verbose_shows_it_on_standard_error() -> None:
    out, err = run("verbose")
    assert out == "after\n[False, False, False, False, False, False]\nTrue\n"
    assert all(word in err for word in ("printed", "child", "logged", "logged later", "progress"))
