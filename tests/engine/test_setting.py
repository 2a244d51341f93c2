"""The list of settings, without an engine."""

from __future__ import annotations

from itertools import combinations, product

from tests.engine.setting import SETTINGS, Setting


def levels(setting: Setting) -> dict[str, object]:
    return {
        "overlap": "--disable-overlap-schedule" not in setting.flags,
        "two ranks": "--tp-size" in setting.flags,
        "pages": setting.page > 1,
        "radix cache": "--disable-radix-cache" not in setting.flags,
        "mixed chunks": "--enable-mixed-chunk" in setting.flags,
        "lpm": "lpm" in setting.flags,
        "forced preemption": setting.forced,
        "policy": setting.policy,
    }


def test_every_pair_of_levels_is_served_once() -> None:
    rows = [levels(setting) for setting in SETTINGS.values()]
    missing = []
    for a, b in combinations(rows[0], 2):
        served = {(row[a], row[b]) for row in rows}
        wanted = product({row[a] for row in rows}, {row[b] for row in rows})
        missing += [f"{a} = {x}, {b} = {y}" for x, y in wanted if (x, y) not in served]
    assert not missing
