"""Inputs of the workloads: from a folder of real ones, or the few that come with the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglang_ext.driver.errors import InputError

BUILT_IN = Path(__file__).parent / "data"
NO_FOLDER = "built in"
"""What records call the inputs that come with the package."""


@dataclass(frozen=True, slots=True)
class Items:
    """Where a workload's inputs come from.

    Args:
        folder: `--workloads`; None: the built-in ones.
    """

    folder: Path | None = None

    def read(self, built_in: str, patterns: tuple[str, ...]) -> list[dict[str, Any]]:
        """All items, in the order of the files.

        Args:
            built_in: name of the package's own file.
            patterns: names of the folder's files, with wildcards.

        Raises:
            InputError: the folder has none of them, or one cannot be read.
        """
        if self.folder is None:
            return list(_lines(BUILT_IN / built_in))
        files = sorted({file for pattern in patterns for file in self.folder.glob(pattern)})
        if not files:
            raise InputError(f"{self.folder} has no file {' or '.join(patterns)}")
        return [item for file in files for item in _lines(file)]


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {file}: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise InputError(f"{file}, line {number}: {error}") from None
        if not isinstance(item, dict):
            raise InputError(f"{file}, line {number}: an object is needed, found {type(item).__name__}")
        yield item
