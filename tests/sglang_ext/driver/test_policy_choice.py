"""The policy of an engine of our own: what its processes are told, and what is refused before they start."""

from __future__ import annotations

import pytest

from sglang_ext.driver.engine import Engine
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.policy_choice import policy_variables


def test_what_is_given_goes_into_the_environment() -> None:
    assert policy_variables(None, None, {}) == {}
    assert policy_variables("paper", "stage2, region", {"GRAPE_POLICY": "budget"}) == {
        "GRAPE_POLICY": "paper",
        "GRAPE_POLICY_OFF": "stage2, region",
    }
    assert policy_variables(None, "ridge", {"GRAPE_POLICY": "deadline"}) == {"GRAPE_POLICY_OFF": "ridge"}
    assert policy_variables(None, "", {"GRAPE_POLICY_OFF": "nonsense"}) == {"GRAPE_POLICY_OFF": ""}


@pytest.mark.parametrize(
    ("policy", "off", "message"),
    [
        ("papper", None, r"unknown policy 'papper'; did you mean 'paper'\?"),
        ("paper", "ridge", "unknown part of the policy 'paper' 'ridge'; known: edge_weight, preemption, priority"),
        ("deadline", "preempt", r"unknown part of a policy 'preempt'; did you mean 'preemption'\?"),
        ("budget", "stage2", "unknown part of the policy 'budget' 'stage2'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(policy: str | None, off: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        policy_variables(policy, off, {})


def test_a_name_from_the_environment_is_said_to_be_from_there() -> None:
    with pytest.raises(InputError, match=r"'deadlines'\? \(from GRAPE_POLICY or GRAPE_POLICY_OFF\)"):
        policy_variables(None, None, {"GRAPE_POLICY": "deadline", "GRAPE_POLICY_OFF": "deadline"})


def test_a_server_has_its_own_policy() -> None:
    for given in ({"policy": "paper"}, {"policy_off": "region"}):
        with pytest.raises(InputError, match=r"the server http://x is set where it is started, with GRAPE_POLICY"):
            Engine(url="http://x", **given)  # type: ignore[arg-type]
