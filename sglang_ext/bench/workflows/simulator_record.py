"""What a comparison of the simulator with a measurement found."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

KIND: Literal["grape.bench.simulator/1"] = "grape.bench.simulator/1"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Pair(_Model):
    """One figure, in seconds."""

    measured: float
    simulated: float

    @property
    def ratio(self) -> float | None:
        """Simulated over measured; None where nothing was measured."""
        return self.simulated / self.measured if self.measured else None


class PlaceCheck(_Model):
    """One workload at one load.

    Args:
        rate: runs per second; None: closed loop.
        runs: of each arm.
        cost, errors: F, fitted to the steps of all arms here, and its mean relative error on those held out.
        arms: per arm its figures by name.
    """

    workload: str
    load: str
    rate: float | None
    runs: int
    cost: dict[str, float]
    errors: dict[str, float]
    arms: dict[str, dict[str, Pair]]


class SimulatorRecord(_Model):
    """Args:
    unloaded_s: u, as the measurement had it.
    client_s: from a token's step to the arrival of a request that a client sends because of it.
    settings: those of the measurement.
    """

    kind: Literal["grape.bench.simulator/1"] = KIND
    unloaded_s: float
    client_s: float
    settings: dict[str, Any]
    places: list[PlaceCheck]
