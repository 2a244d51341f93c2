"""Small jobs and machines for the simulator's tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grape_dsl.compiler import compile
from grape_dsl.workflow import Workflow
from sglang_ext.bench.simulation.clients import Client, Slo
from sglang_ext.bench.simulation.engine import Engine, Former
from sglang_ext.bench.simulation.estimates import Estimates
from sglang_ext.bench.simulation.machine import Machine, Overlap
from sglang_ext.bench.workload.job import Hole, Job, TaskShape, Text
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.snapshot import Holding, Piece, Plan, Snapshot

SLO = Slo(ttft_s=100.0, tbt_s=10.0)
# A step takes 1 s, and each prefill token 0.1 s more.
COST = CostModel(fixed=1.0, token=0.1)


def machine(overlap: Overlap = Overlap.NONE, client_s: float = 0.0, **settings: int) -> Machine:
    values = {"kv_tokens": 10_000, "chunk": 1000, "running": 64, **settings}
    return Machine("test", COST, overlap=overlap, client_s=client_s, **values)


def task(name: str, *segments: int | str, output: int = 3, shared: str = "") -> TaskShape:
    """A task of which each segment is a length of known text, or the name of the task that fills a hole.

    Args:
        shared: key of the first segment, where it is the same as another task's.
    """
    parts: list[Text | Hole] = []
    for number, segment in enumerate(segments):
        key = shared if shared and not number else f"{name}.{number}"
        parts.append(Hole(segment) if isinstance(segment, str) else Text(key, segment))
    return TaskShape(name, tuple(parts), output, output)


def job(*tasks: TaskShape, at: float = 0.0, index: int = 0) -> Job:
    """The tasks as a job; text is another job's only where it is `shared`."""
    own = tuple(TaskShape(t.name, tuple(_own(s, index) for s in t.segments), t.output, t.limit) for t in tasks)
    return Job(index, "test", at, own, PROGRAM, {})


def chain(index: int = 0, at: float = 0.0) -> Job:
    """a of 10 tokens writes 4; b has 50 tokens, a's output and 6 more, and writes 3."""
    return job(task("a", 10, output=4), task("b", 50, "a", 6), at=at, index=index)


def _own(segment: Text | Hole, index: int) -> Text | Hole:
    if isinstance(segment, Hole) or "." not in segment.key:
        return segment
    return Text(f"{index}/{segment.key}", segment.tokens)


def _program() -> Workflow:
    flow = Workflow("test")
    flow.add_variable("x", "OutputVar")
    flow.add_task("t", "text", task_output="x")
    return flow


PROGRAM = compile(_program())


class Greedy:
    """A policy that fills each step with `room` tokens, the oldest prompt first."""

    name = "greedy"
    switches: frozenset[str] = frozenset()

    def __init__(self, room: int = 1000, early: bool = True) -> None:
        self.room = room
        self.early = early
        self.seen: list[Snapshot] = []

    def plan(self, snapshot: Snapshot) -> Plan:
        self.seen.append(snapshot)
        room, pieces = self.room, []
        give_up = self.yields_first(snapshot.holding)[:1] if snapshot.short else ()
        for prefill in sorted(snapshot.ready, key=lambda p: not p.complete):
            tokens = min(room, prefill.pending)
            if tokens and prefill.rid not in give_up and (prefill.complete or (self.early and not snapshot.short)):
                pieces.append(Piece(prefill.rid, tokens))
                room -= tokens
        return Plan(tuple(pieces), give_up)

    def yields_first(self, holding: tuple[Holding, ...]) -> tuple[str, ...]:
        return tuple(h.rid for h in sorted(holding, key=lambda h: (h.complete, -h.order)))


def simulated(
    jobs: Sequence[Job],
    former: Former,
    on: Machine,
    client: type[Client] = Client,
    estimates: Estimates | None = None,
    **settings: object,
) -> tuple[Client, Engine]:
    """Run the jobs to their end."""
    engine = Engine(on, former)
    own = client(engine, SLO, estimates or Estimates(), **settings)
    own.start(jobs)
    engine.run()
    return own, engine


def times(client: Client, run: int = 0) -> dict[str, list[float]]:
    """When each task's tokens left."""
    return {name: request.token_s for name, request in client.runs[run].requests.items()}


def nothing_left(engines: Iterable[Engine]) -> bool:
    return all(e.cache.used == 0 and not e.running and not e.open for e in engines)
