"""Loads by what they do to stock SGLang, so that no policy has a say in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from sglang_ext.bench.attainment import Attainment, ServiceLevels
from sglang_ext.bench.repetition import interference
from sglang_ext.bench.run_figures import RunSet
from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.simulation.simulate import simulate
from sglang_ext.bench.simulation.simulated_arm import SimulatedArm, stock_arm
from sglang_ext.bench.workload.job import Job
from sglang_ext.driver.errors import InputError

# Stock's default knees where this share of its tokens is delayed by another task's prefill.
KNEE_SHARE = 0.05
# The share of runs that the best stock setting attains at the load `busy`.
BUSY_ATTAINED = 0.84
NAMED = ("knee", "busy")
# The load is right to about 1%.
_HALVINGS = 6
# Runs per second; half an hour for each.
_LEAST = 0.0005
_STOCK = tuple(stock_arm(f"{setting}/plain") for setting in ("default", "mixed-128", "mixed-256", "mixed-512"))

MakeJobs = Callable[[float], Sequence[Sequence[Job]]]
"""The jobs of each repetition at a rate in runs per second."""


def knee(make: MakeJobs, machine: Machine, slo: Slo) -> float:
    """Runs per second where decode rows x tasks / tokens passes 5% under stock's default."""

    def beyond(rate: float) -> bool:
        results = [simulate(jobs, machine, stock_arm("default"), slo) for jobs in make(rate)]
        return interference(results) > KNEE_SHARE

    return _first(beyond)


def busy(make: MakeJobs, machine: Machine, slo: Slo, arms: Sequence[SimulatedArm] = _STOCK) -> float:
    """Runs per second up to which the best of some stock settings attains 84% (definition `mean`)."""
    levels = ServiceLevels(slo.ttft_s, slo.tbt_s)

    def beyond(rate: float) -> bool:
        repetitions = make(rate)
        for arm in arms:
            runs = RunSet([simulate(jobs, machine, arm, slo).runs for jobs in repetitions], levels)
            if runs.share_kept(Attainment.MEAN) >= BUSY_ATTAINED:
                return False
        return True

    return _first(beyond)


def number(load: str, named: Iterable[str]) -> float:
    """A load's runs per second. Raises InputError, which says what else there is, if they are no positive number."""
    try:
        rate = float(load)
    except ValueError:
        rate = 0.0
    if not 0 < rate < math.inf:
        raise InputError(f"--load {load}: a number of runs per second above 0, or one of {', '.join(named)}")
    return rate


def check_loads(in_flight: int | None, loads: Sequence[str], named: Sequence[str]) -> None:
    """Raises InputError if a closed loop is asked for together with rates, or a load is neither a name nor a rate."""
    if in_flight and loads:
        raise InputError("--in-flight is a closed loop, which has no rate; leave --load out")
    for load in loads:
        if load not in named:
            number(load, named)


def _first(beyond: Callable[[float], bool]) -> float:
    """Where `beyond` turns true, by halving; the least rate there is if it is true even then."""
    low = high = 0.01
    while low > _LEAST and beyond(low):
        low, high = low / 2, low
    while not beyond(high):
        low, high = high, high * 2
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return float(f"{low:.3g}")
