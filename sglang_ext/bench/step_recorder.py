"""Writes down each step of a scheduler, in the scheduler's process. `StepLog` reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sglang.srt.managers.scheduler import Scheduler, run_scheduler_process

from sglang_ext.bench.step_profiler import StepProfiler


def run_recorded_scheduler(file: Path, profiled: Sequence[int], *args: Any, **kwargs: Any) -> None:
    """SGLang's scheduler process, its steps written to `file`: a JSON line each, with its launch and its contents.

    Args:
        profiled: sizes of decode batches of which some steps are profiled too.
    """
    recorder = StepRecorder(file, StepProfiler(profiled))
    # Before the plugins are loaded: a scheduler of theirs inherits from this class.
    Scheduler.run_batch = recorder.around(Scheduler.run_batch)
    run_scheduler_process(*args, **kwargs)


class StepRecorder:
    def __init__(self, file: Path, profiler: StepProfiler) -> None:
        # Open for the life of the process; a line is written at once.
        self._file = file.open("w", encoding="utf-8", buffering=1)
        self._profiler = profiler
        self._started = False

    def around(self, run_batch: Any) -> Any:
        def run_and_write(scheduler: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
            launch = time.monotonic()
            decodes, chunks = contents(batch)
            if not self._started:
                self._started = True
                self._write({"threads": torch.get_num_threads()})
            self._write({"launch": launch, "decodes": decodes, "chunks": chunks})
            profile = self._profiler.step(launch, decodes if not chunks else 0)
            if profile is not None:
                self._write({"profile": profile.model_dump()})
            return run_batch(scheduler, batch, *args, **kwargs)

        return run_and_write

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")


def contents(batch: Any) -> tuple[int, list[tuple[int, int]]]:
    """Of a ScheduleBatch the sequences that decode, and per piece of a prompt its (cached tokens in front, tokens)."""
    if not batch.forward_mode.is_extend():
        return len(batch.reqs), []
    decoding = {id(req) for req in batch.decoding_reqs or ()}
    chunks = [
        (int(prefix), int(tokens))
        for req, prefix, tokens in zip(batch.reqs, batch.prefix_lens, batch.extend_lens, strict=True)
        if id(req) not in decoding
    ]
    return len(batch.reqs) - len(chunks), chunks
