"""When jobs arrive: a Poisson process, or the times of a recorded trace."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sglang_ext.driver.errors import InputError

POISSON = "poisson"
"""What records call arrivals that are no trace's."""


class Arrivals(Protocol):
    def times(self, jobs: int, seed: int) -> list[float]:
        """`jobs` times in seconds from the start, never decreasing, the first one small. Equal seeds, equal times."""


@dataclass(frozen=True, slots=True)
class Poisson:
    """Args: rate: jobs per second on average."""

    rate: float

    def times(self, jobs: int, seed: int) -> list[float]:
        chance = random.Random(f"arrivals {seed}")
        now, found = 0.0, []
        for _ in range(jobs):
            now += chance.expovariate(self.rate)
            found.append(now)
        return found


@dataclass(frozen=True, slots=True)
class Replayed:
    """The times of a trace.

    Args:
        stamps: seconds, never decreasing.
        rate: jobs per second; the time scale is chosen so that the part taken has this rate. None: as recorded.
    """

    stamps: tuple[float, ...]
    rate: float | None = None

    def times(self, jobs: int, seed: int) -> list[float]:
        """Each seed takes another stretch of the trace. Raises InputError if the trace is shorter than `jobs`."""
        spare = len(self.stamps) - jobs
        if spare < 0:
            raise InputError(f"the trace has {len(self.stamps):,} arrivals, fewer than {jobs:,} runs")
        first = random.Random(f"stretch {seed}").randint(0, spare)
        taken = self.stamps[first : first + jobs]
        spread = taken[-1] - taken[0]
        scale = 1.0 if self.rate is None or not spread else (jobs - 1) / self.rate / spread
        return [(stamp - taken[0]) * scale for stamp in taken]


def read_trace(file: Path) -> tuple[float, ...]:
    """The stamps of an Azure trace (CSV with TIMESTAMP) or a Mooncake one (JSON lines with `timestamp` in ms).

    Raises:
        InputError: it is neither, or has no arrival.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the trace {file}: {error}") from None
    try:
        if lines and lines[0].startswith("TIMESTAMP"):
            stamps = [datetime.fromisoformat(line.partition(",")[0][:26]).timestamp() for line in lines[1:] if line]
        else:
            stamps = [float(json.loads(line)["timestamp"]) / 1000 for line in lines if line]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} is no trace: {type(error).__name__}: {error}; needed: a CSV with the column TIMESTAMP, or JSON "
            "lines with timestamp in milliseconds"
        ) from None
    if not stamps:
        raise InputError(f"the trace {file} has no arrival")
    start = min(stamps)
    return tuple(sorted(stamp - start for stamp in stamps))
