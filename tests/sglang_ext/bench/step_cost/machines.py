"""Steps of a machine whose costs are known."""

from __future__ import annotations

import random
from collections.abc import Iterator

from sglang_ext.bench.step_cost.design import Design, Limits
from sglang_ext.bench.step_log import Step
from sglang_ext.policy.cost_model import CostModel, Load

LIMITS = Limits(rows=32, context=1024, kv=8192, tokens=512, prefix=1024)


def step(cost: CostModel, rows: int, kv: int, chunks: tuple[tuple[int, int], ...], noise: float = 0.0) -> Step:
    """Args: kv: that its rows read. noise: factor on its time, less 1."""
    load = Load(rows=rows, kv=kv).with_pieces(chunks)
    return Step(cost.time(load) * (1 + noise), rows, chunks, load.kv)


def run(cost: CostModel, settings: int, noise: float, seed: int = 5) -> Iterator[tuple[int, list[Step]]]:
    """Settings of the design with their steps, each off by a normal error."""
    design, rng = Design(LIMITS, seed=seed), random.Random(seed)
    for number in range(settings):
        setting = design.draw()
        rows, kv = len(setting.contexts), sum(setting.contexts)
        probes = [*setting.probes, *([()] if rows else [])]
        yield number, [step(cost, rows, kv, probe, rng.gauss(0, noise)) for probe in probes for _ in range(3)]
