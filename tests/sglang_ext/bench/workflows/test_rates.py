"""Loads of a real engine that cannot be found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sglang_ext.bench.simulation.clients import Slo
from sglang_ext.bench.workflows.prepared import RunSource
from sglang_ext.bench.workflows.rates import find_rate, machine_of
from sglang_ext.driver.errors import InputError
from tests.sglang_ext.bench.workflows.cells import CALIBRATION

SLO = Slo(40 * CALIBRATION.unloaded_s, 3 * CALIBRATION.unloaded_s)


@pytest.mark.parametrize("load", ["half", "knee", "busy"])
def test_an_engine_that_cannot_hold_the_workload_is_refused(tokenizer_path: Path, load: str) -> None:
    small = replace(machine_of(CALIBRATION), kv_tokens=100)
    with pytest.raises(InputError, match=f"--load {load}: no rate .* 'code', .*; give the engine more KV, or name"):
        find_rate(load, "code", RunSource(tokenizer_path), small, SLO)
