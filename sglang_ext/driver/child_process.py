"""SGLang's processes as Grape starts them: deaf to Ctrl-C, which the main process answers for all.

A SIGTERM ends them at once, but for what multiprocessing would leave behind in the system; a whole end of a
Python program that has loaded torch takes seconds.

At module level, since multiprocessing's spawned processes import what they run by name. A forked one has
taken over all that its parent had loaded, its signal handlers too.
"""

from __future__ import annotations

import gc
import os
import signal
from multiprocessing import util
from typing import Any


def run_scheduler(*args: Any, **kwargs: Any) -> None:
    _prepare()
    from sglang.srt.managers.scheduler import run_scheduler_process

    run_scheduler_process(*args, **kwargs)


def run_detokenizer(*args: Any, **kwargs: Any) -> None:
    _prepare()
    from sglang.srt.managers.detokenizer_manager import run_detokenizer_process

    run_detokenizer_process(*args, **kwargs)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # What was loaded stays; each search for garbage would look through it again, and copy its pages.
    gc.freeze()


def _end(*_: object) -> None:
    util._exit_function()  # type: ignore[attr-defined]
    os._exit(0)
