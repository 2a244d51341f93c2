"""Settings from `GRAPE_*` variables."""

from __future__ import annotations

import pytest

from sglang_ext.settings import EngineSettings, SettingsError, Streaming, unknown_settings


def test_defaults_and_variables() -> None:
    assert EngineSettings.from_environment({}) == EngineSettings()
    got = EngineSettings.from_environment(
        {"GRAPE_STREAMING": "static", "GRAPE_PREFILL_BUDGET": "7", "GRAPE_LAPSE": "1.5"}
    )
    assert (got.streaming, got.prefill_budget, got.lapse) == (Streaming.STATIC, 7, 1.5)
    assert got.as_dict()["streaming"] == "static"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("GRAPE_STREAMING", "maybe", "on, static, off"),
        ("GRAPE_PREFILL_BUDGET", "1.5", "a whole number"),
        ("GRAPE_SLO_TBT", "60", "positive number with a unit"),
        ("GRAPE_LAPSE", "soon", "a number"),
        ("GRAPE_MAX_TASKS", "-1", "at least 0"),
        ("GRAPE_KV_RESERVE", "2", "from 0 to 1"),
        ("GRAPE_LAPSE", "nan", "at least 0"),
        ("GRAPE_CPU_STACK", "yes", "on, off"),
    ],
)
def test_a_bad_value_names_the_variable(name: str, text: str, expected: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}='{text}'.*{expected}"):
        EngineSettings.from_environment({name: text})


def test_names_that_nothing_reads() -> None:
    known = {f"GRAPE_{name.upper()}": "" for name in EngineSettings().as_dict()}
    assert unknown_settings({**known, "GRAPE_CACHE_DIR": "", "GRAPE_API_KEY": "", "PATH": "", "grape_lapse": ""}) == []
    slip, strange = unknown_settings({"GRAPE_Q": "1", "GRAPE_PREFIL_BUDGET": "7"})
    near = "GRAPE_PREFILL_BUDGET or GRAPE_PROFILE"
    assert slip == f"GRAPE_PREFIL_BUDGET is set, but Grape has no such setting; did you mean {near}?"
    assert strange.startswith("GRAPE_Q is set") and "known settings: GRAPE_API_KEY, GRAPE_CACHE_DIR, " in strange
