"""The steps of an engine's scheduler, as its recorder wrote them to a file."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sglang_ext.bench.step_profile import RawProfile
from sglang_ext.driver.errors import EngineError
from sglang_ext.policy.cost_model import Load

_POLL_SECONDS = 0.004
# Of a launch's line, where it has them.
_MORE = ("step", "kv", "waiting", "held", "plan", "idle")


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the scheduler's loop: from the launch of its batch to the launch of the next.

    Args:
        seconds: of the whole turn, the scheduler's own work included.
        decodes: sequences that decode in it.
        chunks: pieces of prompts in it, each (cached tokens in front, tokens).
        kv: tokens of KV that it reads: the contexts of the sequences that decode, and what is in front of each piece.
        paused: the scheduler had nothing to do before the next one, so that `seconds` is no measure.
    """

    seconds: float
    decodes: int
    chunks: tuple[tuple[int, int], ...]
    kv: int = 0
    paused: bool = False

    @property
    def load(self) -> Load:
        """As the cost model takes it."""
        return Load(rows=self.decodes, kv=self.context).with_pieces(self.chunks)

    @property
    def context(self) -> int:
        """Tokens of KV that the sequences which decode read."""
        return self.kv - sum(prefix for prefix, _ in self.chunks)


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
    idle: bool = False


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
        key: of the engine, as a plain form; None before its first step.
        lag: a step runs so many launches after its own.
        profiles: of the sizes of batch that were to be profiled.
    """

    def __init__(self, file: Path) -> None:
        self.threads: int | None = None
        self.key: dict[str, Any] | None = None
        self.lag = 0
        self.profiles: list[RawProfile] = []
        self._path = file
        self._file: IO[bytes] | None = None
        self._rest = b""
        self._launches: list[Launch] = []
        self._steps: list[Step] = []
        self._ends: list[End] = []

    def restart(self) -> None:
        """Forget the steps so far."""
        self._read()
        self._launches.clear()
        self._steps.clear()
        self._ends.clear()

    def steps(self) -> list[Step]:
        """The steps since the restart that another one follows; the last may have been followed by a pause."""
        self._read()
        launches, lag = self._launches, self.lag
        for i in range(len(self._steps), len(launches) - lag - 1):
            self._steps.append(_step(launches[i], launches[i + lag : i + lag + 2]))
        return list(self._steps)

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
                self.threads, self.key, self.lag = line["threads"], line.get("key"), line.get("lag", 0)
            elif "profile" in line:
                self.profiles.append(RawProfile.model_validate(line["profile"]))
            elif "launch" in line:
                self._launches.append(_launch(line))
            elif "end" in line:
                self._ends.append(End(line["step"], line["end"], line["tokens"]))


def _launch(line: dict[str, Any]) -> Launch:
    """A file may say more of a step than is asked for here, or less."""
    chunks = tuple((prefix, tokens) for prefix, tokens in line["chunks"])
    return Launch(line["launch"], line["decodes"], chunks, **{name: line[name] for name in _MORE if name in line})


def _step(own: Launch, ran: Sequence[Launch]) -> Step:
    """Args: ran: the launches between which it ran."""
    begin, end = ran
    paused = any(each.idle for each in ran if each is not own)
    return Step(end.launch - begin.launch, own.decodes, own.chunks, own.kv, paused)
