"""The steps of an engine's scheduler, as its recorder wrote them to a file."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sglang_ext.bench.step_profile import RawProfile
from sglang_ext.driver.errors import EngineError

_POLL_SECONDS = 0.004


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the scheduler's loop: from the launch of its batch to the launch of the next.

    Args:
        seconds: of the whole turn, the scheduler's own work included.
        decodes: sequences that decode in it.
        chunks: pieces of prompts in it, each (cached tokens in front, tokens).
    """

    seconds: float
    decodes: int
    chunks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """What the recorder knows of a step when it is launched; its lines say what each field is."""

    launch: float
    decodes: int
    chunks: tuple[tuple[int, int], ...]
    step: int = 0
    kv: int = 0
    waiting: int = 0
    held: int = 0
    plan: float = 0.0


@dataclass(frozen=True, slots=True)
class End:
    """Args: tokens: output tokens that left with it, by the request's rid."""

    step: int
    end: float
    tokens: dict[str, int]


class StepLog:
    """Reads the file as it grows.

    Attributes:
        threads: of torch in the scheduler's process; None before its first step.
        profiles: of the sizes of batch that were to be profiled.
    """

    def __init__(self, file: Path) -> None:
        self.threads: int | None = None
        self.profiles: list[RawProfile] = []
        self._path = file
        self._file: IO[bytes] | None = None
        self._rest = b""
        self._launches: list[Launch] = []
        self._ends: list[End] = []

    def restart(self) -> None:
        """Forget the steps so far."""
        self._read()
        self._launches.clear()
        self._ends.clear()

    def steps(self) -> list[Step]:
        """The steps since the restart that another one follows; the last may have been followed by a pause."""
        self._read()
        pairs = zip(self._launches, self._launches[1:], strict=False)
        return [Step(after.launch - own.launch, own.decodes, own.chunks) for own, after in pairs]

    def lines(self) -> tuple[list[Launch], list[End]]:
        """All that was written since the restart, in order."""
        self._read()
        return list(self._launches), list(self._ends)

    async def wait(self, enough: Callable[[list[Step]], bool], seconds: float) -> None:
        """Wait until the steps are enough. Raises EngineError if they are not after so many seconds."""
        until = time.monotonic() + seconds
        while not enough(self.steps()):
            if time.monotonic() > until:
                raise EngineError(f"the engine did not come to the step that is measured within {seconds:.0f} s")
            await asyncio.sleep(_POLL_SECONDS)

    def _read(self) -> None:
        if self._file is None:
            if not self._path.exists():
                return
            self._file = self._path.open("rb")
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in map(json.loads, lines):
            if "threads" in line:
                self.threads = line["threads"]
            elif "profile" in line:
                self.profiles.append(RawProfile.model_validate(line["profile"]))
            elif "end" in line:
                self._ends.append(End(**line))
            else:
                chunks = tuple((prefix, tokens) for prefix, tokens in line.pop("chunks"))
                self._launches.append(Launch(chunks=chunks, **line))
