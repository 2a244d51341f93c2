"""SGLang's server, the steps of its scheduler written to a file.

`python -m sglang_ext.bench.step_server FILE SIZES FLAGS`; SIZES are those of decode batches to profile, as in `1,16`,
or empty.

It goes the way of `python -m sglang.launch_server`, but for the scheduler's process.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from sglang.srt.plugins import load_plugins
from sglang.srt.server_args import prepare_server_args
from sglang.srt.utils import kill_process_tree


def main(file: Path, profiled: list[int], flags: list[str]) -> None:
    load_plugins()
    # As in SGLang's own: behind the plugins, which may replace what these modules import.
    from sglang.srt.entrypoints.http_server import launch_server

    from sglang_ext.bench.step_recorder import run_recorded_scheduler

    settings = prepare_server_args(flags)
    settings.resolve_once()
    try:
        launch_server(settings, run_scheduler_process_func=partial(run_recorded_scheduler, file, profiled))
    finally:
        kill_process_tree(os.getpid(), include_parent=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(size) for size in sys.argv[2].split(",") if size], sys.argv[3:])
