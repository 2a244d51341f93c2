"""SGLang's processes as Grape starts them: deaf to Ctrl-C, which the main process answers for all.

At module level, since multiprocessing's spawned processes import what they run by name.
"""

from __future__ import annotations

import signal
from typing import Any


def run_scheduler(*args: Any, **kwargs: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from sglang.srt.managers.scheduler import run_scheduler_process

    run_scheduler_process(*args, **kwargs)


def run_detokenizer(*args: Any, **kwargs: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from sglang.srt.managers.detokenizer_manager import run_detokenizer_process

    run_detokenizer_process(*args, **kwargs)
