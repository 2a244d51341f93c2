"""The option --html."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from sglang_ext.commands.bench_simulate import bench_simulate
from sglang_ext.commands.bench_workflows import bench_workflows
from tests.sglang_ext.bench.report.records import simulation_record, workflow_record


@pytest.mark.parametrize(
    ("command", "record", "heading"),
    [
        (bench_workflows, workflow_record(), "<h1>Workflows under load: search, chat</h1>"),
        (bench_simulate, simulation_record(), "<h1>Simulated: search on a-device</h1>"),
    ],
)
def test_a_saved_record_becomes_a_page(command, record, heading, tmp_path):
    saved, html = tmp_path / "record.json", tmp_path / "page.html"
    saved.write_text(record.model_dump_json())
    shown = CliRunner().invoke(command, ["--read", str(saved), "--json", "--html", str(html)], catch_exceptions=False)
    assert shown.exit_code == 0
    assert type(record).model_validate_json(shown.stdout) == record
    assert heading in html.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", [bench_workflows, bench_simulate])
def test_a_folder_that_is_not_there_is_said_before_the_work(command, tmp_path):
    shown = CliRunner().invoke(command, ["--html", str(tmp_path / "no" / "page.html")], catch_exceptions=False)
    assert shown.exit_code == 2
    assert "there is no folder" in shown.stderr and "make it first" in shown.stderr
