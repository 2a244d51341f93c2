"""SGLang's processes as Grape starts them: deaf to Ctrl-C, which the main process answers for all.

A SIGTERM ends them as Python programs end, so that they leave nothing behind in the system.

At module level, since multiprocessing's spawned processes import what they run by name.
"""

from __future__ import annotations

import signal
import sys
from typing import Any


def run_scheduler(*args: Any, **kwargs: Any) -> None:
    _set_signals()
    from sglang.srt.managers.scheduler import run_scheduler_process

    run_scheduler_process(*args, **kwargs)


def run_detokenizer(*args: Any, **kwargs: Any) -> None:
    _set_signals()
    from sglang.srt.managers.detokenizer_manager import run_detokenizer_process

    run_detokenizer_process(*args, **kwargs)


def _set_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
