"""Settings of engines under which outputs must not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.engine import extra_plugin
from tests.engine.server import Server, serve

# Objectives that bind: on a small model some are met and some are missed.
OBJECTIVES = {"GRAPE_SLO_TTFT": "40x", "GRAPE_SLO_TBT": "3x"}
LPM = ("--schedule-policy", "lpm")
SMALL_POOL = ("--max-total-tokens", "2048", "--max-running-requests", "24")


@dataclass(frozen=True)
class Setting:
    """An engine's flags and policy.

    Args:
        forced: tasks give up their KV at random steps.
        retract: SGLang takes running requests back every so many steps; 0: only where it must.
    """

    flags: Sequence[str]
    policy: str = "budget"
    forced: bool = False
    retract: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def page(self) -> int:
        return int(self.flags[self.flags.index("--page-size") + 1]) if "--page-size" in self.flags else 1

    @property
    def streams_all(self) -> bool:
        """Whether every whole chunk of an output is prefilled in time: no policy waits, nobody takes KV away."""
        return self.policy == "budget" and not self.forced

    @contextmanager
    def serve(self, model: Path, folder: Path) -> Iterator[Server]:
        """A running server."""
        environment = {"GRAPE_POLICY": self.policy, **self.environment}
        if self.policy != "budget":
            environment = OBJECTIVES | environment
        if "--tp-size" in self.flags:
            # SGLang ends the server where ranks decide differently.
            environment |= {"SGLANG_CPU_OMP_THREADS_BIND": "0|1", "SGLANG_ENABLE_RANK_CONSENSUS_CHECKER": "1"}
        if self.forced:
            environment |= extra_plugin.variables(folder / "plugin", "tests.engine.forced_preemption:register")
        if self.retract:
            environment |= {"SGLANG_TEST_RETRACT": "1", "SGLANG_TEST_RETRACT_INTERVAL": str(self.retract)}
        with serve(model, folder, self.flags, environment=environment) as server:
            yield server


# Pairwise over overlap, ranks, page size, radix cache, mixed chunks, queue order, policy and forced preemption; the
# chunk size varies along. `scarce` has a small pool, short patience, and requests taken back while they decode.
SETTINGS: dict[str, Setting] = {
    "budget-overlap-mixed-page16-chunk64": Setting(
        ["--enable-mixed-chunk", "--page-size", "16", "--chunked-prefill-size", "64"]
    ),
    "deadline-no-overlap": Setting(["--disable-overlap-schedule", "--chunked-prefill-size", "-1"], "deadline"),
    "paper-no-overlap-no-radix-mixed-forced": Setting(
        [
            "--disable-overlap-schedule",
            "--disable-radix-cache",
            "--enable-mixed-chunk",
            "--chunked-prefill-size",
            "96",
        ],
        "paper",
        forced=True,
    ),
    "budget-no-overlap-no-radix-page16-lpm": Setting(
        ["--disable-overlap-schedule", "--disable-radix-cache", "--page-size", "16", *LPM]
    ),
    "deadline-tp2-overlap-mixed-lpm-forced": Setting(
        ["--tp-size", "2", "--enable-mixed-chunk", *LPM], "deadline", forced=True
    ),
    "budget-tp2-no-overlap-no-radix-chunk32-forced": Setting(
        ["--tp-size", "2", "--disable-overlap-schedule", "--disable-radix-cache", "--chunked-prefill-size", "32"],
        forced=True,
    ),
    "paper-tp2-overlap-page16-lpm": Setting(["--tp-size", "2", "--page-size", "16", *LPM], "paper"),
    "scarce": Setting(
        [
            "--disable-radix-cache",
            "--enable-mixed-chunk",
            "--page-size",
            "16",
            "--chunked-prefill-size",
            "64",
            *LPM,
            *SMALL_POOL,
        ],
        "deadline",
        forced=True,
        retract=23,
        environment={"GRAPE_UPSTREAM_TIMEOUT": "2", "GRAPE_LAPSE": "0.4"},
    ),
}
