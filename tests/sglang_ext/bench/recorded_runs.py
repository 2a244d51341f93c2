"""Recorded runs, built in few words."""

from __future__ import annotations

from collections.abc import Sequence

from sglang_ext.bench.recorded_run import RecordedRun, RecordedTask


def task(name: str, *token_s: float, upstream: Sequence[str] = ()) -> RecordedTask:
    return RecordedTask(name=name, upstream=tuple(upstream), token_s=token_s)


def run(*tasks: RecordedTask, index: int = 0, submitted: float = 0.0) -> RecordedRun:
    return RecordedRun(index=index, workload="test", submitted_s=submitted, tasks=tasks)


def chain(gaps: Sequence[float], index: int = 0, first: float = 1.0, switch: float | None = None) -> RecordedRun:
    """A task with these gaps between its tokens; with `switch` a second one of one token, so long after it."""
    stamps = [first]
    for gap in gaps:
        stamps.append(stamps[-1] + gap)
    if switch is None:
        return run(task("a", *stamps), index=index)
    return run(task("a", *stamps), task("b", stamps[-1] + switch, upstream=["a"]), index=index)
