"""Arms by name."""

from __future__ import annotations

import pytest

from sglang_ext.bench.arms import engines
from sglang_ext.bench.workflows.arms import ALL_STOCK, GRAPE, ArmNames
from sglang_ext.driver.errors import InputError

NAMES = ArmNames("deadline", 40, 2.5)


def variables(name):
    return dict(NAMES.arm(name).engine.environment)


def test_grape_is_told_the_policy_and_the_levels():
    arm = NAMES.arm("grape")
    assert not arm.stock and arm.client == "held" and arm.engine.mixed
    assert variables("grape") == {
        "GRAPE_POLICY": "deadline",
        "GRAPE_POLICY_OFF": "",
        "GRAPE_SLO_TTFT": "40x",
        "GRAPE_SLO_TBT": "2.5x",
    }
    assert variables("grape:paper")["GRAPE_POLICY"] == "paper"
    assert variables("grape-stage2,region")["GRAPE_POLICY_OFF"] == "stage2,region"
    both = NAMES.arm("grape:paper-stage2")
    assert dict(both.engine.environment)["GRAPE_POLICY_OFF"] == "stage2"


def test_without_streaming_it_is_another_client_on_the_same_engine():
    static, off = NAMES.arm("grape/static"), NAMES.arm("grape/off")
    assert (static.engine.streaming, static.client) == ("static", "held")
    assert off.client == "plain"
    assert off.engine == NAMES.arm("grape").engine
    assert len(engines((off, static, NAMES.arm("grape")))) == 2


@pytest.mark.parametrize(
    ("name", "mixed", "flags"),
    [
        ("default/plain", False, ()),
        ("default", False, ()),
        ("mixed-64/prewarm", True, ("--chunked-prefill-size", "64")),
        ("interval-4/plain", False, ("--prefill-decode-interval", "4")),
        ("lpm/prewarm", False, ("--schedule-policy", "lpm")),
    ],
)
def test_stock_settings_are_flags(name, mixed, flags):
    arm = NAMES.arm(name)
    assert arm.stock and arm.engine.streaming is None
    assert (arm.engine.mixed, arm.engine.flags) == (mixed, flags)
    assert arm.client == (name.partition("/")[2] or "plain")
    assert arm.engine.environment == ()


def test_groups_of_names():
    arms = NAMES.arms(("grape", "stock", "default/plain", "ablations"))
    names = [arm.name for arm in arms]
    assert names[: 1 + len(ALL_STOCK)] == [GRAPE, *ALL_STOCK]
    assert {"grape/static", "grape/off", "grape-stage2", "grape-deadlines"} <= set(names)
    assert len(set(names)) == len(names)
    # Both clients of a setting share its engine.
    assert len(engines(NAMES.arms(("stock",)))) == len(ALL_STOCK) / 2
    # Engines write files by their names.
    assert all(arm.engine.name.replace("-", "").isalnum() or "_" in arm.engine.name for arm in arms)
    assert len({arm.engine.name for arm in arms}) == len({arm.engine for arm in arms})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mixd-64", "no arm 'mixd-64'; an arm is grape, "),
        ("mixed-64/fast", "no arm 'mixed-64/fast'"),
        ("default/prewarm-priority", "simulated only"),
        ("grape-stage3", "unknown part of a policy 'stage3'; did you mean 'stage2'"),
        ("grape:papers", "unknown policy 'papers'; did you mean 'paper'"),
        ("grape:budget-stage2", "'stage2'"),
    ],
)
def test_names_that_cannot_be_read(name, message):
    with pytest.raises(InputError) as error:
        NAMES.arm(name)
    assert message in str(error.value)


def test_an_unknown_policy_is_refused_at_once():
    with pytest.raises(InputError, match="unknown policy 'dedline'; did you mean 'deadline'"):
        ArmNames("dedline", 40, 3)
