"""The policies by name."""

from __future__ import annotations

from collections.abc import Callable

from sglang_ext.policy.budget import BudgetPolicy
from sglang_ext.policy.configuration import Configuration, UnknownNameError
from sglang_ext.policy.deadline import DeadlinePolicy
from sglang_ext.policy.paper import PaperPolicy
from sglang_ext.policy.policy import Policy
from sglang_ext.policy.step_times import StepTimes
from sglang_ext.policy.stock import StockPolicy

_POLICIES: dict[str, Callable[[Configuration, StepTimes], Policy]] = {
    each.name: each for each in (DeadlinePolicy, PaperPolicy, BudgetPolicy, StockPolicy)
}


def policy_names() -> tuple[str, ...]:
    """The names that `new_policy` takes."""
    return tuple(_POLICIES)


def new_policy(name: str, configuration: Configuration, times: StepTimes) -> Policy:
    """A policy by its name.

    Raises:
        UnknownNameError: there is no such policy, or it has no such part as is to be off.
    """
    if name not in _POLICIES:
        raise UnknownNameError("policy", name, policy_names())
    policy = _POLICIES[name](configuration, times)
    for part in sorted(configuration.off):
        if part not in policy.switches:
            raise UnknownNameError(f"part of the policy {name!r}", part, sorted(policy.switches))
    return policy
