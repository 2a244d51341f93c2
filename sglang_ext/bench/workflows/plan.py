"""What is measured in which order, and how long that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sglang_ext.bench.arms import Arm, EngineKind, engines

ModeName = Literal["quick", "screen", "full"]

# Engines that are alive at once; those that are not measured sleep.
TOGETHER = 4
# As measured on two cores: an engine's start, an arm's warm-up, what a cell takes beside the time in which runs
# arrive, and a cell of a closed loop.
START_S, WARM_UP_S, TAIL_S, CLOSED_S, CALIBRATION_S = 33.0, 10.0, 10.0, 45.0, 75.0
KNEE, BUSY, HALF, CLOSED = "knee", "busy", "half", "closed"
NAMED = (HALF, KNEE, BUSY)


@dataclass(frozen=True, slots=True)
class Mode:
    """Args:
    seconds: in which the runs of a cell arrive.
    limit_s: no cell is begun that would end behind it.
    """

    name: ModeName
    workloads: tuple[str, ...]
    loads: tuple[str, ...]
    repetitions: int
    seconds: float
    limit_s: float


MODES: dict[str, Mode] = {
    "quick": Mode("quick", ("search",), (KNEE,), 3, 20.0, 12 * 60),
    "screen": Mode("screen", ("search", "code", "summary"), (KNEE,), 1, 18.0, 40 * 60),
    "full": Mode("full", ("search", "code", "summary"), (HALF, KNEE, BUSY), 5, 9.0, 100 * 60),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell stands. Args: load: its name."""

    workload: str
    load: str


@dataclass(frozen=True, slots=True)
class Stage:
    """Arms that are compared with each other.

    Args:
        places: each with every arm.
        repetitions: how many.
        blocks: into which they are divided; for each the engines are started anew.
        first: the number of the first repetition; other numbers are other runs.
    """

    name: str
    arms: tuple[Arm, ...]
    places: tuple[Place, ...]
    repetitions: int
    blocks: int = 1
    first: int = 1

    @property
    def numbers(self) -> range:
        """Of its repetitions."""
        return range(self.first, self.first + self.repetitions)

    def block_repetitions(self) -> list[list[int]]:
        """The numbers of the repetitions of each block, about as many in each."""
        numbers = list(self.numbers)
        blocks = min(self.blocks, self.repetitions)
        return [numbers[len(numbers) * b // blocks : len(numbers) * (b + 1) // blocks] for b in range(blocks)]

    def groups(self) -> list[list[EngineKind]]:
        """Engines that are alive together."""
        kinds = engines(self.arms)
        return [kinds[first : first + TOGETHER] for first in range(0, len(kinds), TOGETHER)]

    @property
    def cells(self) -> int:
        return len(self.arms) * len(self.places) * self.repetitions

    def estimate_s(self, seconds: float) -> float:
        """How long it takes, about. Args: seconds: in which the runs of a cell arrive."""
        block_s = len(engines(self.arms)) * START_S + len(self.arms) * WARM_UP_S
        cell_s = sum(CLOSED_S if place.load == CLOSED else seconds + TAIL_S for place in self.places)
        return len(self.block_repetitions()) * block_s + len(self.arms) * self.repetitions * cell_s


def time_plan(stages: Sequence[Stage], seconds: float, calibrated: bool) -> list[tuple[str, float]]:
    """What there is to do, each with about how many seconds it takes."""
    found = [] if calibrated else [("calibration on stock's default", CALIBRATION_S)]
    for stage in stages:
        arms, places = len(stage.arms), len(stage.places)
        what = f"{stage.name}: {arms} arms x {places} loads x {stage.repetitions} repetitions of {seconds:g} s"
        found.append((what, stage.estimate_s(seconds)))
    return found
