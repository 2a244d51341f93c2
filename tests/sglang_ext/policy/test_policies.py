"""Policies by name, their parts by name, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sglang_ext.policy.configuration import SWITCHES, Configuration, UnknownNameError
from sglang_ext.policy.policies import new_policy, policy_names
from sglang_ext.policy.step_times import StepTimes
from tests.sglang_ext.policy.steps import complete, holding, snapshot
from tests.sglang_ext.policy.strategies import CPU

TIMES = StepTimes(CPU)


def test_the_policies_there_are() -> None:
    assert set(policy_names()) == {"paper", "deadline", "budget", "stock"}
    for name in policy_names():
        policy = new_policy(name, Configuration(), TIMES)
        assert policy.name == name
        assert policy.switches <= SWITCHES.keys()
    assert set().union(*(new_policy(name, Configuration(), TIMES).switches for name in policy_names())) == set(SWITCHES)


def test_stock_leaves_the_step_to_sglang() -> None:
    stock = new_policy("stock", Configuration(), TIMES)
    assert stock.plan(snapshot([complete("a", 10)])) is None
    assert stock.yields_first((holding("a", 5), holding("b", 5, 1))) == ("b", "a")


def test_unknown_names_get_the_nearest_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown policy 'papper'; did you mean 'paper'\?"):
        new_policy("papper", Configuration(), TIMES)
    with pytest.raises(UnknownNameError, match=r"unknown policy 'x'; known: deadline, paper, budget, stock"):
        new_policy("x", Configuration(), TIMES)
    with pytest.raises(UnknownNameError, match=r"unknown part of a policy 'preempt'; did you mean 'preemption'\?"):
        Configuration(off=frozenset({"preempt"}))
    with pytest.raises(UnknownNameError, match=r"unknown eviction order 'lfu'; did you mean 'lru'"):
        Configuration(eviction="lfu")


def test_a_part_that_a_policy_does_not_have_is_refused() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown part of the policy 'paper' 'ridge'; known: edge_weight, preemption"
    ):
        new_policy("paper", Configuration(off=frozenset({"ridge"})), TIMES)
    with pytest.raises(UnknownNameError, match="unknown part of the policy 'stock' 'region'; there is none"):
        new_policy("stock", Configuration(off=frozenset({"region"})), TIMES)


def test_the_policy_needs_no_other_package() -> None:
    """Not even numpy: what it imports is the standard library's."""
    code = "import sys, sglang_ext.policy.policies, sglang_ext.policy.cost_fit, sglang_ext.policy.snapshot_json\n"
    code += "print(sorted({n.split('.')[0] for n in sys.modules} & {'numpy', 'torch', 'sglang', 'pydantic', 'scipy'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
