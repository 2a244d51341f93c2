"""Whose the processors were: a measurement that shared the machine can be told from one that did not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# Fields of /proc/stat's first line: those in which a processor rests.
_IDLE, _IOWAIT, _LAST = 3, 4, 8


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Seconds of processor time since the machine's start.

    Args:
        all: of everything that ran.
        own: of this process and its descendants that are alive.
    """

    all: float
    own: float

    @classmethod
    def now(cls) -> ProcessorTime | None:
        """None where the system does not say."""
        try:
            ticks = os.sysconf("SC_CLK_TCK")
            fields = [int(field) for field in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]]
            busy = sum(field for n, field in enumerate(fields[:_LAST]) if n not in (_IDLE, _IOWAIT))
            return cls(busy / ticks, sum(_descendants()) / ticks)
        except (OSError, ValueError):
            return None

    def others_since(self, before: ProcessorTime) -> float:
        """Seconds of processor time that other processes took since `before`."""
        return max(0.0, (self.all - before.all) - (self.own - before.own))


def _descendants() -> Iterator[int]:
    """Ticks of this process and of those that it and its children started."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name in brackets may hold anything.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = int(fields[11]) + int(fields[12])
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return (ticks[pid] for pid in own if pid in ticks)
