"""A record of a benchmark, as it was printed with --json."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import BaseModel, ValidationError

from sglang_ext.driver.errors import InputError

Record = TypeVar("Record", bound=BaseModel)
READ_OPTION: dict[str, Any] = {
    "type": click.Path(path_type=Path, exists=True, dir_okay=False),
    "metavar": "FILE",
    "help": "Show a record that was printed with --json; nothing is measured.",
}
"""The option `--read`."""


def read_record(file: Path, kind: type[Record]) -> Record:
    """Raises InputError if the file holds something else."""
    try:
        return kind.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{file} is no record of this benchmark: {where}: {first['msg']}") from None
