"""Records with all that a page can show, made of recorded runs."""

from __future__ import annotations

from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.comparison import ArmRuns, Comparison
from sglang_ext.bench.gap_record import ArmRecord, EngineRecord
from sglang_ext.bench.load_result import EngineFigures, LoadResult
from sglang_ext.bench.machine import Machine
from sglang_ext.bench.recorded_step import RecordedStep
from sglang_ext.bench.repetition import Repetition
from sglang_ext.bench.run_figures import Gaps
from sglang_ext.bench.simulation.record import SimulationRecord
from sglang_ext.bench.verdict import Verdict
from sglang_ext.bench.workflows.record import WorkflowRecord, WorkloadResult
from sglang_ext.policy.cost_model import CostModel
from tests.sglang_ext.bench.recorded_runs import chain
from tests.sglang_ext.bench.workflows.cells import CALIBRATION

HOSTILE = "grape-<script>alert('x')</script>&\"part"
"""An arm that nobody would make."""

STEPS = tuple(RecordedStep(n * 0.1, n * 0.1 + 0.1, rows=2, tokens=10, kv=100, attention=50.0) for n in range(5))


def arm(name: str, gap: float, switch: float | None, ttft: float = 1.0) -> ArmRuns:
    runs = [tuple(chain((gap, gap * n), index=n, first=ttft, switch=switch) for n in (1, 2)) for _ in range(2)]
    late = Gaps(mean=0.001, p50=0.001, p95=0.002, p99=0.003, most=0.004)
    engine = EngineFigures(
        plan_share=0.01,
        matrix_share=0.3,
        again_share=0.05,
        late=late,
        client_share=0.1,
        others=0.25,
        same_output=0.875,
    )
    repetitions = [Repetition(runs=own, steps=STEPS, computed=50, needed=80, kv_high=120) for own in runs]
    return ArmRuns(name, not name.startswith("grape"), repetitions, engine)


def load(name: str, rate: float | None, *arms: ArmRuns) -> LoadResult:
    cost = CostModel.from_dict({"fixed": 0.05, "row": 0.01, "token": 0.001})
    return Comparison(ServiceLevels(4.0, 0.3), cost, 1200).of(arms, name, rate)


def usual(name: str = "knee", rate: float | None = 0.5, slower: float = 1.0) -> LoadResult:
    """Grape is faster at a switch, slower to its first token; `mixed-32/plain` is not viable."""
    return load(
        name,
        rate,
        arm("grape", 0.11 * slower, 0.2),
        arm("default/plain", 0.3 * slower, 1.0, 0.5),
        arm("mixed-128/prewarm", 0.1 * slower, 0.5, 0.5),
        arm("mixed-32/plain", 0.1, 0.5, 60.0),
    )


def workflow_record() -> WorkflowRecord:
    ablations = load("knee", 0.5, arm("grape", 0.1, 0.2), arm(HOSTILE, 0.1, 0.6), arm("default/plain", 0.3, 1.0))
    search = WorkloadResult(
        workload="search",
        screen=usual(),
        kept=["mixed-128/prewarm"],
        loads=[usual(), usual("busy", 0.9, 1.5), usual("closed", None)],
        ablations=ablations,
    )
    chat = load("knee", 3.0, arm("grape", 0.1, None), arm("default/plain", 0.1, None))
    names = dict.fromkeys(name for result in (*search.loads, ablations) for name in result.arms)
    return WorkflowRecord(
        mode="quick",
        indicative=True,
        started="2026-01-01T00:00:00+00:00",
        seconds=600.0,
        machine=Machine(
            system="Linux", processor="a <fast> CPU", cpus=2, memory_bytes=1 << 30, accelerator=None, variables={}
        ),
        load=(0.1, 2.0),
        versions={"sglang": "0.5.23"},
        model="a/model",
        settings={"repetitions": 2, "seconds": 20.0, "inputs": "built in", "arrivals": "poisson", "policy": "deadline"},
        calibration=CALIBRATION.model_copy(update={"errors": {"all": 0.07}}),
        ttft_s=4.0,
        tbt_s=0.3,
        engines={"grape": EngineRecord(flags=["--tp-size", "1"], environment={"A": "b"}, resolved={}, plugin={})},
        arms={name: ArmRecord(engine="grape", client="held", stock=False, about=f"about {name}") for name in names},
        workloads=[search, WorkloadResult(workload="chat", screen=None, kept=[], loads=[chat])],
        unfinished=3,
        verdicts=[
            Verdict(goal="switches 3 times shorter", met=True, found="0.20"),
            Verdict(goal="more than all", met=False, found="0.9 <em>"),
            Verdict(goal="nobody asked", met=None, found="open"),
        ],
    )


def simulation_record() -> SimulationRecord:
    return SimulationRecord(
        machine={"name": "a-device", "cost": {"fixed": 0.05}, "overlap": "device"},
        unloaded_s=0.1,
        ttft_s=4.0,
        tbt_s=0.3,
        settings={"workload": "search", "seeds": 2, "runs": 2, "seconds": 1.0, "arrivals": "poisson"},
        loads=[usual("2", 2.0), usual("knee", 3.0, 2.0)],
    )
