"""The scheduling policy of an engine of our own, its names checked before the engine starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sglang_ext.driver.errors import InputError
from sglang_ext.policy.configuration import Configuration, UnknownNameError
from sglang_ext.policy.online_fit import guess
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.step_times import StepTimes
from sglang_ext.settings import EngineSettings

POLICY, POLICY_OFF = "GRAPE_POLICY", "GRAPE_POLICY_OFF"


def policy_variables(policy: str | None, off: str | None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that give an engine this policy, without the parts in `off`.

    Args:
        policy, off: a policy's name, and a comma list of its parts; None: as the environment has it.

    Raises:
        InputError: there is no such policy, or it has no such part; the message lists the nearest names.
    """
    given = {name: value for name, value in ((POLICY, policy), (POLICY_OFF, off)) if value is not None}
    default = EngineSettings()
    effective = {**environ, **given}
    parts = effective.get(POLICY_OFF, default.policy_off).split(",")
    try:
        configuration = Configuration(off=frozenset(name for part in parts if (name := part.strip())))
        new_policy(effective.get(POLICY, default.policy), configuration, StepTimes(guess()))
    except UnknownNameError as error:
        from_environment = "" if given else f" (from {POLICY} or {POLICY_OFF})"
        raise InputError(f"{error}{from_environment}") from None
    return given
