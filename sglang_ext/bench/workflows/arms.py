"""The arms by name: Grape, Grape without a part of it, and stock SGLang's settings with two clients."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sglang_ext.bench.arms import Arm, EngineKind, grape_about
from sglang_ext.bench.load_result import DEFAULT
from sglang_ext.bench.simulation.simulated_arm import stock_arm
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.configuration import Configuration, UnknownNameError
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.step_times import StepTimes
from sglang_ext.settings import Streaming

GRAPE = "grape"
CLIENTS = ("plain", "prewarm")
SETTINGS = ("default", "mixed-32", "mixed-64", "mixed-128", "mixed-256", "interval-4", "lpm")
QUICK = (GRAPE, DEFAULT, "mixed-128/plain", "mixed-128/prewarm")
ALL_STOCK = tuple(f"{setting}/{client}" for setting in SETTINGS for client in CLIENTS)
# Names that stand for several.
STOCK, ABLATIONS = "stock", "ablations"
_STATIC, _OFF = "/static", "/off"
_OURS = re.compile(rf"{GRAPE}(?::(?P<policy>[^/-]+))?(?P<way>/static|/off)?(?:-(?P<parts>.+))?")
_FORMS = (
    f"{GRAPE}, {GRAPE}{_STATIC}, {GRAPE}{_OFF}, {GRAPE}-PART (a part of the policy off), {GRAPE}:POLICY; default, "
    f"mixed-N, interval-N or lpm, with /plain or /prewarm behind it; {STOCK} or {ABLATIONS} for all of a kind"
)


@dataclass(frozen=True, slots=True)
class ArmNames:
    """Makes arms.

    Args:
        policy: Grape's, by name.
        ttft_steps, tbt_steps: the service levels that Grape's engine is told, in unloaded decode steps.

    Raises:
        InputError: there is no such policy.
    """

    policy: str
    ttft_steps: float
    tbt_steps: float

    def __post_init__(self) -> None:
        _switches(self.policy)

    def arms(self, names: tuple[str, ...]) -> tuple[Arm, ...]:
        """Each once, in this order. Raises InputError if one cannot be read."""
        found: dict[str, Arm] = {}
        for name in names:
            several = {STOCK: ALL_STOCK, ABLATIONS: self.ablations()}.get(name, (name,))
            for arm in map(self.arm, several):
                found.setdefault(arm.name, arm)
        return tuple(found.values())

    def arm(self, name: str) -> Arm:
        """Raises InputError if the name cannot be read."""
        own = _OURS.fullmatch(name)
        return _stock(name) if own is None else self._grape(name, own["policy"], own["way"], own["parts"] or "")

    def default(self) -> Arm:
        """Stock SGLang as it is."""
        return self.arm(DEFAULT)

    def ablations(self) -> tuple[str, ...]:
        """With the fixed start of prompts only, without streaming, and without each part of the policy."""
        parts = (f"{GRAPE}-{part}" for part in sorted(_switches(self.policy)))
        return (f"{GRAPE}{_STATIC}", f"{GRAPE}{_OFF}", *parts)

    def _grape(self, name: str, policy: str | None, way: str | None, off: str) -> Arm:
        policy = policy or self.policy
        _switches(policy, off)
        environment = (
            ("GRAPE_POLICY", policy),
            ("GRAPE_POLICY_OFF", off),
            ("GRAPE_SLO_TTFT", f"{self.ttft_steps:g}x"),
            ("GRAPE_SLO_TBT", f"{self.tbt_steps:g}x"),
        )
        about = grape_about(policy, off, Streaming((way or "/on")[1:]))
        # An engine whose client does not stream is the one whose client does.
        kind = re.sub(r"\W", "-", name.replace(_OFF, ""))
        streaming = Streaming.STATIC if way == _STATIC else Streaming.ON
        client = "plain" if way == _OFF else "held"
        return Arm(name, EngineKind(kind, streaming, environment=environment), client, about)


def _switches(policy: str, off: str = "") -> frozenset[str]:
    """The parts of a policy. Raises InputError if it does not exist, or has not the parts that are to be off."""
    parts = frozenset(part for part in off.split(",") if part)
    try:
        return frozenset(new_policy(policy, Configuration(off=parts), StepTimes(CostModel(fixed=1.0))).switches)
    except UnknownNameError as error:
        raise InputError(str(error)) from None


def _stock(name: str) -> Arm:
    try:
        simulated = stock_arm(name)
    except InputError:
        raise InputError(f"no arm {name!r}; an arm is {_FORMS}") from None
    if simulated.settings.priorities:
        raise InputError(f"arm {name!r}: clients with priorities are simulated only; leave -priority out")
    mixed = simulated.settings.mixed
    kind = EngineKind(f"stock-{simulated.setting_name}", None, mixed=mixed, flags=simulated.flags)
    return Arm(simulated.name, kind, simulated.client_name, simulated.about)
