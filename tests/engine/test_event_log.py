"""The event log's file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sglang_ext.engine.event_log import EventLog
from sglang_ext.settings import SettingsError


def test_a_file_that_cannot_be_written_names_the_variable(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "events.jsonl"
    with pytest.raises(SettingsError, match=f"GRAPE_EVENT_LOG={re.escape(repr(str(missing)))}.*No such file"):
        EventLog(str(missing))
    with pytest.raises(SettingsError, match="Is a directory"):
        EventLog(str(tmp_path))


def test_no_path_means_no_file(tmp_path: Path) -> None:
    EventLog("")
    EventLog(str(tmp_path / "events.jsonl"))
    assert [file.name for file in tmp_path.iterdir()] == ["events.jsonl"]
