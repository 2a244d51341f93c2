"""The arms that `grape bench simulate` is asked for."""

from __future__ import annotations

from sglang_ext.bench.load_result import DEFAULT
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.simulation.simulated_arm import PolicyArm, SimulatedArm, all_stock, stock_arm
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.configuration import Configuration, UnknownNameError
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.step_times import StepTimes
from sglang_ext.settings import Streaming

_ALL, _STOCK = "all", "stock"


def stock_arms(names: tuple[str, ...]) -> list[SimulatedArm]:
    """Stock SGLang's arms of these names, all of them where none is named. Raises InputError if one cannot be read."""
    if not names or _ALL in names:
        return list(all_stock())
    # Ratios to the default need it.
    return [stock_arm(name) for name in dict.fromkeys((DEFAULT, *names))]


def policy_arms(
    target: Machine,
    names: tuple[str, ...],
    off: tuple[str, ...],
    evictions: tuple[str, ...],
    streaming: tuple[str, ...],
    weight: int,
) -> list[SimulatedArm]:
    """Each policy whole and without each of `off` (parts joined by commas), in each order and way of streaming.

    Raises:
        InputError: there is no such policy, or no such part of it.
    """
    found: list[SimulatedArm] = []
    for name in dict.fromkeys(names):
        if name == _STOCK:
            raise InputError(f"--policy {_STOCK} leaves the steps to SGLang; simulate a stock arm, --arm {DEFAULT}")
        for parts in ("", *off):
            without = frozenset(part for part in parts.split(",") if part)
            for order in dict.fromkeys(evictions) or (Configuration().eviction,):
                configuration = _configuration(target, name, without, order)
                for mode in map(Streaming, dict.fromkeys(streaming) or (Streaming.ON,)):
                    label = name + "".join(f" -{part}" for part in sorted(without)) + (f" {order}" if evictions else "")
                    label += "" if mode is Streaming.ON else f" ({mode})"
                    found.append(PolicyArm(name, configuration, mode, weight, label))
    return found


def _configuration(target: Machine, name: str, without: frozenset[str], order: str) -> Configuration:
    try:
        configuration = Configuration(off=without, eviction=order)
        new_policy(name, configuration, StepTimes(target.cost))
    except UnknownNameError as error:
        raise InputError(str(error)) from None
    return configuration
