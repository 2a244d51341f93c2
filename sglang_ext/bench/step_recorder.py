"""Writes down each step of a scheduler, in the scheduler's process. `StepLog` reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import torch
from sglang.srt.managers.scheduler import Scheduler, run_scheduler_process

from sglang_ext.bench.step_profiler import StepProfiler
from sglang_ext.engine.cost_profile import key_of


def run_recorded_scheduler(file: Path, profiled: Sequence[int], *args: Any, **kwargs: Any) -> None:
    """SGLang's scheduler process, its steps written to `file`: JSON lines, each step's launch and its end.

    With several ranks the lead one writes. The first line has `threads`, `lag` and the engine's `key`. A launch has
    `step` (its number), `launch` (seconds, monotonic), `decodes`, `chunks`, `kv` (tokens of KV that it reads),
    `waiting` (requests that could decode and do not), `held` (tokens of KV that nobody else can have), `plan` (seconds
    that the scheduler took to form it) and `idle`, if the scheduler had nothing to do right before. An end has `step`,
    `end`, and in `tokens` how many output tokens each request got, by rid: they have left the scheduler by then.

    Args:
        profiled: sizes of decode batches of which some steps are profiled too.
    """
    recorder = StepRecorder(file, StepProfiler(profiled))
    # Before the plugins are loaded: a scheduler of theirs inherits from this class.
    Scheduler.run_batch = recorder.around(Scheduler.run_batch)
    Scheduler.on_idle = recorder.idle_before(Scheduler.on_idle)
    run_scheduler_process(*args, **kwargs)


class StepRecorder:
    def __init__(self, file: Path, profiler: StepProfiler) -> None:
        self._path = file
        self._file: IO[str] | None = None
        self._profiler = profiler
        self._idle = True
        self._plan_s = 0.0

    def around(self, run_batch: Any) -> Any:
        def run_and_write(scheduler: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
            launch = time.monotonic()
            if scheduler.tp_group.rank_in_group != 0:
                return run_batch(scheduler, batch, *args, **kwargs)
            if self._file is None:
                # Open for the life of the process; a line is written at once.
                self._file = self._path.open("w", encoding="utf-8", buffering=1)
                self._attach(scheduler)
                self._write(first_line(scheduler))
            decodes, chunks = contents(batch)
            step = {
                "step": scheduler.forward_ct + 1,
                "launch": launch,
                "decodes": decodes,
                "chunks": chunks,
                "kv": kv_read(batch, chunks),
                "waiting": waiting(scheduler.running_batch, batch, decodes),
                "held": held(scheduler),
                "plan": self._plan_s,
            }
            self._write(step | ({"idle": True} if self._idle else {}))
            self._idle = False
            profile = self._profiler.step(launch, decodes if not chunks else 0)
            if profile is not None:
                self._write({"profile": profile.model_dump()})
            return run_batch(scheduler, batch, *args, **kwargs)

        return run_and_write

    def idle_before(self, on_idle: Any) -> Any:
        """The next step does not follow the one before at once."""

        def note(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            self._idle = True
            return on_idle(scheduler, *args, **kwargs)

        return note

    def _attach(self, scheduler: Any) -> None:
        """To the very object, so that a subclass's own methods are inside."""
        form, process = scheduler.get_next_batch_to_run, scheduler.process_batch_result

        def form_and_time(*args: Any, **kwargs: Any) -> Any:
            begin = time.monotonic()
            plan = form(*args, **kwargs)
            self._plan_s = time.monotonic() - begin
            return plan

        def process_and_write(batch: Any, result: Any) -> Any:
            before = [len(req.output_ids) for req in batch.reqs]
            processed = process(batch, result)
            end = time.monotonic()
            made = {
                req.rid: len(req.output_ids) - had
                for req, had in zip(batch.reqs, before, strict=True)
                if len(req.output_ids) > had
            }
            self._write({"step": batch.forward_iter, "end": end, "tokens": made})
            return processed

        scheduler.get_next_batch_to_run = form_and_time
        scheduler.process_batch_result = process_and_write

    def _write(self, line: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(line) + "\n")


def first_line(scheduler: Any) -> dict[str, Any]:
    """Threads, the engine's key, and `lag`: a step runs so many launches after its own, while others are planned."""
    lag = 1 if scheduler.enable_overlap and scheduler.device != "cpu" else 0
    return {"threads": torch.get_num_threads(), "lag": lag, "key": key_of(scheduler).model_dump(mode="json")}


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


def kv_read(batch: Any, chunks: Sequence[tuple[int, int]]) -> int:
    """Tokens of KV that a batch reads: the contexts of its decodes, and what stands in front of each piece."""
    rows = (batch.decoding_reqs or ()) if batch.forward_mode.is_extend() else batch.reqs
    return sum(len(req.origin_input_ids) + len(req.output_ids) for req in rows) + sum(prefix for prefix, _ in chunks)


def waiting(running: Any, batch: Any, decodes: int) -> int:
    """Requests that could have decoded in this step: those that run, if it prefills alone."""
    if decodes or not batch.forward_mode.is_extend() or running is batch:
        return 0
    return sum(1 for req in running.reqs if not req.finished())


def held(scheduler: Any) -> int:
    """Tokens of KV in use; what the prefix cache could give up does not count."""
    free = scheduler.token_to_kv_pool_allocator.available_size() + scheduler.tree_cache.evictable_size()
    return int(scheduler.max_total_num_tokens - free)
