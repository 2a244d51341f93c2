"""The option `--html` of the benchmarks of arms under load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sglang_ext.bench.report.page import page
from sglang_ext.bench.report.report import Report
from sglang_ext.driver.errors import InputError

HTML_OPTION: dict[str, Any] = {
    "type": click.Path(path_type=Path, dir_okay=False, writable=True),
    "metavar": "FILE",
    "help": "Also write the record as a page with plots that explains itself; with --read of one that is there.",
}


def check_html(file: Path | None) -> None:
    """Before anything is measured. Raises InputError if the file's folder is not there."""
    if file is not None and not file.absolute().parent.is_dir():
        raise InputError(f"--html {file}: there is no folder {file.absolute().parent}; make it first")


def write_html(file: Path, report: Report) -> None:
    """Raises InputError if the file cannot be written."""
    try:
        file.write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--html {file} cannot be written: {error.strerror}") from None
