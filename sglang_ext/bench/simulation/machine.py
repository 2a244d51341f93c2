"""What is simulated: the engine's step time, its memory, and how its loop overlaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sglang_ext.policy.cost_model import CostModel, Load


class Overlap(StrEnum):
    """How SGLang's loop runs beside the steps.

    `none`: a step's results are known before the next one is formed. `device`: the next step is formed while one
    runs on the device, so that results count one step late; tokens leave when their step ends. `host`: the same loop
    where the steps run on the same processor, so that tokens leave only after the next step.
    """

    NONE = "none"
    DEVICE = "device"
    HOST = "host"

    @classmethod
    def of(cls, device: str, disabled: bool) -> Overlap:
        """That of an engine on this device, with overlap scheduling disabled or not."""
        if disabled:
            return cls.NONE
        return cls.HOST if device == "cpu" else cls.DEVICE


@dataclass(frozen=True, slots=True)
class Machine:
    """Args:
    name: of the profile.
    cost: F.
    kv_tokens: tokens of KV in all.
    chunk: tokens of prefill in a step at most, SGLang's default here.
    running: requests that may decode at once.
    client_s: from a token's leaving to the arrival of a request that a client sends because of it.
    context: tokens of context of the unloaded decode step.
    scatter: measured over modelled times of steps, by regime; each step's time is multiplied with one of them, drawn at
        random. A policy knows nothing of it. Regimes without any take what F says.
    """

    name: str
    cost: CostModel
    kv_tokens: int
    chunk: int = 8192
    running: int = 256
    overlap: Overlap = Overlap.DEVICE
    client_s: float = 0.001
    context: int = 512
    scatter: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def unloaded_s(self) -> float:
        """u: a decode step of one request."""
        return self.cost.time(Load(rows=1, kv=self.context))
