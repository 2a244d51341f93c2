"""A run's timeline as a Chrome trace, which Perfetto and chrome://tracing show: a track per task.

Early prefill of a task stands under the decode that feeds it, so the overlap can be seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sglang_ext.driver.events import Event, RunStarted, TaskFinished, TaskSubmitted


@dataclass(slots=True)
class _RunTrack:
    index: int
    tasks: tuple[str, ...]
    begin: float
    submitted: dict[str, float] = field(default_factory=dict)
    finished: dict[str, TaskFinished] = field(default_factory=dict)

    def offset(self) -> float:
        """Seconds from the engine's clock to the run's.

        A request takes a moment to reach the engine; the quickest one counts.
        """
        gaps = [
            self.submitted[name] - event.engine["submitted_s"]
            for name, event in self.finished.items()
            if "submitted_s" in event.engine
        ]
        return max(gaps, default=0.0)


class Timeline:
    """Collects the events of runs; `trace` gives the JSON object."""

    def __init__(self) -> None:
        self._runs: dict[str, _RunTrack] = {}

    def take(self, event: Event) -> None:
        """Hear an event as it happens: a run stands where its start was heard."""
        if isinstance(event, RunStarted):
            self._runs[event.run] = _RunTrack(event.index, event.tasks, time.monotonic())
        elif isinstance(event, TaskSubmitted):
            self._runs[event.run].submitted[event.task] = event.at
        elif isinstance(event, TaskFinished):
            self._runs[event.run].finished[event.task] = event

    def trace(self) -> dict[str, Any]:
        """The trace: process = run, thread = task, times in microseconds."""
        first = min((run.begin for run in self._runs.values()), default=0.0)
        events = [event for run in self._runs.values() for event in _run_events(run, run.begin - first)]
        return {"displayTimeUnit": "ms", "traceEvents": events}


def _run_events(run: _RunTrack, begin: float) -> Iterator[dict[str, Any]]:
    process = run.index + 1
    yield _name("process_name", process, 0, f"run {run.index}")
    offset = run.offset()
    for number, task in enumerate(run.tasks, 1):
        yield _name("thread_name", process, number, task)
        if task in run.finished:
            for name, start, end, values in _slices(run, task, offset):
                yield {
                    "ph": "X",
                    "pid": process,
                    "tid": number,
                    "name": name,
                    "ts": round((begin + start) * 1e6),
                    "dur": max(1, round((end - start) * 1e6)),
                    "args": dict(values),
                }


def _slices(run: _RunTrack, task: str, offset: float) -> Iterator[tuple[str, float, float, Mapping[str, Any]]]:
    """(name, start, end, figures) in seconds from the run's submission, in order and without overlap."""
    event = run.finished[task]
    record, engine = event.record, event.engine
    at = run.submitted[task]
    first = engine["first_token_s"] + offset if engine.get("first_token_s") else record.first_token_s
    end = engine["end_s"] + offset if engine.get("end_s") else record.end_s
    assert end is not None, "a finished task has an end"
    for start, stop, tokens, early in engine.get("pieces", ()):
        start, stop = start + offset, stop + offset
        if start > at:
            yield "waiting", at, start, {}
        yield "early prefill" if early else "prefill", start, stop, {"tokens": tokens}
        at = stop
    start = end if first is None else first
    if start > at:
        yield "waiting" if engine.get("pieces") else "waiting and prefill", at, start, {}
    figures = {"tokens": len(record.output_ids), "finish_reason": record.finish_reason, "cached": record.cached_tokens}
    yield "decode", max(at, start), end, figures


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": what, "args": {"name": name}}
