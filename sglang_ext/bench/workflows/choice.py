"""`Choice`: what a mode measures, with what was asked for on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sglang_ext.bench.load_result import with_default
from sglang_ext.bench.workflows.arms import ABLATIONS, GRAPE, STOCK, ArmNames
from sglang_ext.bench.workflows.plan import CLOSED, KNEE, Mode, Place, Stage

# For the time plan, which is made before the screen has said which ones it leaves.
_ASSUMED = ("mixed-64/plain", "mixed-128/plain", "mixed-128/prewarm", "interval-4/plain")
# The first workload at every load; the others, the parts and the closed loop at one, less often.
_FEW, _BLOCKS = 2, 2
# Parts of Grape have repetitions of their own, so that all arms of that comparison take turns.
_OF_PARTS = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured.

    Args:
        arms: names; empty: those of the mode.
    """

    mode: Mode
    names: ArmNames
    workloads: tuple[str, ...]
    loads: tuple[str, ...]
    repetitions: int
    arms: tuple[str, ...] = ()

    def screen(self) -> Stage | None:
        """Every stock setting, each workload at one load."""
        if self.mode.name == "quick":
            return None
        places = tuple(Place(workload, KNEE) for workload in self.workloads)
        # Runs of its own: those by which an arm is kept are not those by which it is compared.
        return Stage("screen", self.names.arms((STOCK,)), places, 1, first=0)

    def stages(self, workload: str, left: Sequence[str]) -> list[Stage]:
        """What follows the screen for a workload. Args: left: the stock arms that the screen kept."""
        if self.mode.name == "screen":
            return []
        arms = self.names.arms(self.arms or (GRAPE, *with_default(left)))
        if self.mode.name == "quick" or workload != self.workloads[0]:
            loads = self.loads if self.mode.name == "quick" else (KNEE,)
            repetitions = self.repetitions if self.mode.name == "quick" else min(_FEW, self.repetitions)
            return [Stage(workload, arms, tuple(Place(workload, load) for load in loads), repetitions)]
        few, knee = min(_FEW, self.repetitions), (Place(workload, KNEE),)
        parts = self.names.arms((GRAPE, *with_default(()), ABLATIONS))
        return [
            Stage(workload, arms, tuple(Place(workload, load) for load in self.loads), self.repetitions, _BLOCKS),
            Stage(ABLATIONS, parts, knee, _OF_PARTS, first=self.repetitions + 1),
            Stage(CLOSED, arms, (Place(workload, CLOSED),), few),
        ]

    def all_stages(self) -> list[Stage]:
        """About what there will be, for the time plan."""
        screen = self.screen()
        return [
            *([screen] if screen else []),
            *(stage for workload in self.workloads for stage in self.stages(workload, _ASSUMED)),
        ]
