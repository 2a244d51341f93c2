"""Cells on disk."""

from __future__ import annotations

import pytest

from sglang_ext.bench.workflows.rates import Rates
from sglang_ext.bench.workflows.store import CellStore
from sglang_ext.driver.errors import InputError
from tests.sglang_ext.bench.workflows.cells import cell


def test_a_cell_comes_back_whole(tmp_path):
    saved = cell("grape/static", "search", "0.25", 2)
    CellStore(tmp_path / "new" / "folder", {"seconds": 1.5}).save_cell(saved)
    again = CellStore(tmp_path / "new" / "folder", {"seconds": 1.5})
    assert again.has(saved.key)
    assert again.cell(saved.key) == saved
    assert not again.has(cell("grape", "search", "0.25", 2).key)
    assert again.cell(cell("grape/static", "search", "0.25", 3).key) is None


def test_a_part_of_a_file_is_no_cell(tmp_path):
    store, own = CellStore(tmp_path, {}), cell("grape", "code", "knee", 1)
    store.save_cell(own)
    (name,) = (file for file in tmp_path.glob("*.json") if file.name != "settings.json")
    # As if the process had been ended while it wrote.
    name.rename(name.with_suffix(".part"))
    assert store.cell(own.key) is None


def test_other_settings_are_refused(tmp_path):
    CellStore(tmp_path, {"policy": "deadline", "seconds": 20.0})
    with pytest.raises(InputError, match=r"other settings \(policy: 'deadline' there, 'paper' now\)"):
        CellStore(tmp_path, {"policy": "paper", "seconds": 20.0})


def test_what_is_no_folder_or_no_measurement_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(InputError, match="cannot be used"):
        CellStore(file, {})
    store = CellStore(tmp_path / "folder", {})
    (tmp_path / "folder" / "rates.json").write_text('{"rates": 1}')
    with pytest.raises(InputError, match=r"rates\.json is no part of a measurement"):
        store.load("rates", Rates)


def test_rates_are_kept_by_workload_and_name(tmp_path):
    store = CellStore(tmp_path, {})
    store.save("rates", Rates().with_rate("search", "knee", 0.5).with_rate("search", "busy", 0.7))
    found = store.load("rates", Rates)
    assert found is not None
    assert found.with_rate("code", "knee", 0.2).rates == {"search": {"knee": 0.5, "busy": 0.7}, "code": {"knee": 0.2}}


def test_each_start_of_engines_has_a_folder_of_its_own(tmp_path):
    store = CellStore(tmp_path / "cells", {})
    first = store.engine_folder()
    (first / "grape.steps").write_text("{}")
    again = CellStore(tmp_path / "cells", {}).engine_folder()
    assert [first, again] == [tmp_path / "cells" / "engines" / n for n in "12"]
    assert list(store.cells()) == []
