"""What is compared: stock settings with a client, and policies with a way of streaming."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from sglang_ext.bench.simulation.clients import Client, Slo
from sglang_ext.bench.simulation.engine import Engine, Former
from sglang_ext.bench.simulation.estimates import Estimates
from sglang_ext.bench.simulation.held_client import HeldClient
from sglang_ext.bench.simulation.machine import Machine
from sglang_ext.bench.simulation.planned import PlannedFormer
from sglang_ext.bench.simulation.prewarm_client import PrewarmClient
from sglang_ext.bench.simulation.stock import StockFormer, StockSettings
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.policies import new_policy
from sglang_ext.policy.step_times import StepTimes
from sglang_ext.settings import Streaming


class SimulatedArm(Protocol):
    """One way to run the jobs."""

    @property
    def name(self) -> str: ...

    @property
    def stock(self) -> bool: ...

    def former(self, machine: Machine, estimates: Estimates, slo: Slo) -> Former:
        """Who forms the steps."""

    def client(self, engine: Engine, slo: Slo, estimates: Estimates) -> Client:
        """Who submits the tasks."""


@dataclass(frozen=True, slots=True)
class StockArm:
    """Stock SGLang. Args: client_name: `plain` or `prewarm`."""

    settings: StockSettings
    setting_name: str
    client_name: str = "plain"

    @property
    def name(self) -> str:
        suffix = "-priority" if self.settings.priorities else ""
        return f"{self.setting_name}/{self.client_name}{suffix}"

    @property
    def flags(self) -> tuple[str, ...]:
        """SGLang's, but for `--enable-mixed-chunk`."""
        settings = self.settings
        flags: list[str] = []
        if settings.chunk is not None:
            flags += ["--chunked-prefill-size", str(settings.chunk)]
        if settings.interval:
            flags += ["--prefill-decode-interval", str(settings.interval)]
        if settings.lpm:
            flags += ["--schedule-policy", "lpm"]
        return tuple(flags)

    @property
    def about(self) -> str:
        """The arm in words."""
        flags = ["--enable-mixed-chunk"] * self.settings.mixed + [*self.flags]
        about = f"stock SGLang, {' '.join(flags) or 'its default'}; each task sent when its inputs are complete"
        if self.client_name == "prewarm":
            about += ", before that its prompt's known beginning to the prefix cache"
        return about + (", the requests for that last in the queue" if self.settings.priorities else "")

    @property
    def stock(self) -> bool:
        return True

    def former(self, machine: Machine, estimates: Estimates, slo: Slo) -> Former:
        return StockFormer(self.settings)

    def client(self, engine: Engine, slo: Slo, estimates: Estimates) -> Client:
        kind = PrewarmClient if self.client_name == "prewarm" else Client
        return kind(engine, slo, estimates)


@dataclass(frozen=True, slots=True)
class PolicyArm:
    """Grape with a policy.

    Args:
        weight: the edge weight of the programs, by which a prompt grows while its upstream writes.
        label: its name; by default that of the policy.
    """

    policy: str
    configuration: Configuration = field(default_factory=Configuration)
    streaming: Streaming = Streaming.ON
    weight: int = DEFAULT_EDGE_WEIGHT
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.policy

    @property
    def stock(self) -> bool:
        return False

    def former(self, machine: Machine, estimates: Estimates, slo: Slo) -> Former:
        policy = new_policy(self.policy, self.configuration, StepTimes(machine.cost))
        return PlannedFormer(policy, estimates)

    def client(self, engine: Engine, slo: Slo, estimates: Estimates) -> Client:
        if self.streaming is Streaming.OFF:
            return Client(engine, slo, estimates)
        return HeldClient(engine, slo, estimates, self.weight, self.streaming is Streaming.ON)


CLIENTS = ("plain", "prewarm", "prewarm-priority")
SETTINGS = (
    "default",
    "mixed-32",
    "mixed-64",
    "mixed-128",
    "mixed-256",
    "mixed-512",
    "interval-4",
    "interval-16",
    "lpm",
)
_FORMS = "default, mixed-N, interval-N or lpm, with /plain, /prewarm or /prewarm-priority behind it"


def stock_arm(name: str) -> StockArm:
    """The arm of a name such as `mixed-128/prewarm`. Raises InputError if it cannot be read."""
    setting, _, client = name.partition("/")
    client = client or "plain"
    found = re.fullmatch(r"(default|lpm)|(mixed|interval)-([1-9]\d*)", setting)
    if found is None or client not in CLIENTS:
        raise InputError(f"no stock arm {name!r}; an arm is {_FORMS}")
    size = int(found[3] or 0)
    settings = StockSettings(
        chunk=size if found[2] == "mixed" else None,
        mixed=found[2] == "mixed",
        interval=size if found[2] == "interval" else 0,
        lpm=found[1] == "lpm",
        priorities=client.endswith("-priority"),
    )
    return StockArm(settings, setting, client.removesuffix("-priority"))


def all_stock(clients: Iterable[str] = CLIENTS) -> list[StockArm]:
    """Every setting that is tried, with each of `clients`."""
    return [stock_arm(f"{setting}/{client}") for client in clients for setting in SETTINGS]
