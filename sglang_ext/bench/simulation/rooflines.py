"""Machines from data: rooflines of devices and models, examples of CPUs, or a measured cost model from a file."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from grape_dsl.diagnostics import nearest
from sglang_ext.bench.simulation.machine import Machine, Overlap
from sglang_ext.driver.errors import InputError
from sglang_ext.policy.cost_model import CostModel

_DATA = Path(__file__).parent / "data"
_BYTES = 2  # bf16
_SETTINGS = ("kv_tokens", "chunk", "running", "overlap", "client_s")


def machine_names() -> list[str]:
    """What `--device` takes."""
    devices = _read("devices.json")
    return [*(f"{d}-{m}" for d in devices["devices"] for m in devices["models"]), *_read("machines.json")]


def machine(name: str) -> Machine:
    """Raises InputError if there is no such machine."""
    if name not in machine_names():
        close = nearest(name, machine_names())
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(machine_names())}"
        raise InputError(f"no machine {name!r}; {hint}")
    examples = _read("machines.json")
    if name in examples:
        return _from_values(name, examples[name])
    device, _, model = name.partition("-")
    data = _read("devices.json")
    return roofline(name, data["devices"][device], data["models"][model], data["assumed"])


def roofline(name: str, device: dict[str, Any], model: dict[str, Any], assumed: dict[str, Any]) -> Machine:
    """T = step + max(reading the weights, computing the tokens) + reading KV + attention.

    Up to a knee the tokens of a step are computed while its weights are read.
    """
    bandwidth = device["bytes_per_s"] * assumed["bandwidth_share"]
    flops = device["bf16_flops"] * assumed["compute_share"]
    hidden, q, kv = model["hidden"], model["heads"] * model["head_dim"], model["kv_heads"] * model["head_dim"]
    per_layer = hidden * (q + 2 * kv) + q * hidden + 3 * hidden * model["intermediate"]
    linears, head = model["layers"] * per_layer, hidden * model["vocabulary"]
    weights_s = (linears + head) * _BYTES / bandwidth
    token_s = 2 * linears / flops
    kv_bytes = 2 * model["layers"] * kv * _BYTES
    stored = (linears + 2 * head) * _BYTES
    return Machine(
        name=name,
        cost=CostModel(
            fixed=device["step_s"] + weights_s,
            kv=kv_bytes / bandwidth,
            attention=4 * model["layers"] * q / flops,
            knee=weights_s / token_s,
            beyond=token_s,
        ),
        kv_tokens=int((device["memory_bytes"] * assumed["memory_share"] - stored) / kv_bytes),
    )


def measured(file: Path, base: Machine) -> Machine:
    """`base` with the cost model in `file`.

    The file is JSON: the coefficients of a cost model, by themselves or under `cost`; beside them in the second case
    other settings of a machine. Raises InputError if it is neither.
    """
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the profile {file}: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"the profile {file} holds no object but {type(values).__name__}")
    return _from_values(file.stem, values if "cost" in values else {"cost": values}, base)


def _from_values(name: str, values: dict[str, Any], base: Machine | None = None) -> Machine:
    settings = {key: values[key] for key in _SETTINGS if key in values}
    try:
        cost = CostModel.from_dict(values["cost"])
        if "overlap" in settings:
            settings["overlap"] = Overlap(settings["overlap"])
        if base is not None:
            settings = {key: getattr(base, key) for key in _SETTINGS} | settings
        return Machine(name=name, cost=cost, **settings)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds no cost model: {error}") from None


@cache
def _read(name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((_DATA / name).read_text(encoding="utf-8"))
    return values
