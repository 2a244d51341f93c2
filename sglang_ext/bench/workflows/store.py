"""Cells on disk, so that a measurement that was ended goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sglang_ext.bench.workflows.cell import Cell, CellKey
from sglang_ext.driver.errors import InputError

_SETTINGS = "settings.json"
_ENGINES = "engines"
CALIBRATION, RATES = "calibration", "rates"
"""Names of what a measurement has beside its cells."""
# Names of other files have fewer.
_CELL_PARTS = 2
Model = TypeVar("Model", bound=BaseModel)


class CellStore:
    """A file per finished cell; a file is whole or not there.

    Args:
        folder: made if it is not there.
        settings: everything that two parts of one measurement must have in common, as plain JSON.

    Raises:
        InputError: the folder belongs to a measurement with other settings, or cannot be used.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.settings = settings
        file = folder / _SETTINGS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                self._write(file, json.dumps(settings, indent=1))
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"--output {folder} cannot be used: {error}") from None
        if found != settings:
            names = sorted(n for n in {*found, *settings} if found.get(n) != settings.get(n))
            differing = "; ".join(f"{n}: {found.get(n)!r} there, {settings.get(n)!r} now" for n in names)
            raise InputError(
                f"--output {folder} holds a measurement with other settings ({differing}); name another folder, or "
                "repeat that measurement's options to go on with it"
            )

    @classmethod
    def found(cls, folder: Path) -> CellStore:
        """A measurement that there is. Raises InputError if the folder holds none."""
        try:
            settings = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
            if not isinstance(settings, dict):
                raise ValueError(f"{_SETTINGS} is no object")
        except (OSError, ValueError) as error:
            raise InputError(
                f"{folder} holds no measurement ({error}); name the folder of `grape bench workflows --output FOLDER`"
            ) from None
        return cls(folder, settings)

    def cells(self) -> Iterator[Cell]:
        """Every cell, in the order of their files' names. Raises InputError if a file holds something else."""
        for file in sorted(self.folder.glob("*.json")):
            if len(file.stem.split(".")) > _CELL_PARTS and (cell := self.load(file.stem, Cell)) is not None:
                yield cell

    def has(self, key: CellKey) -> bool:
        return (self.folder / f"{self._name(key)}.json").exists()

    def cell(self, key: CellKey) -> Cell | None:
        """Raises InputError if its file holds something else."""
        return self.load(self._name(key), Cell)

    def save_cell(self, cell: Cell) -> None:
        self.save(self._name(cell.key), cell)

    def load(self, name: str, kind: type[Model]) -> Model | None:
        """Something of the whole measurement; None if it is not there yet."""
        file = self.folder / f"{name}.json"
        if not file.exists():
            return None
        try:
            return kind.model_validate_json(file.read_bytes())
        except ValidationError as error:
            raise InputError(
                f"{file} is no part of a measurement: {error.errors()[0]['msg']}; remove it to measure it anew"
            ) from None

    def save(self, name: str, value: BaseModel) -> None:
        self._write(self.folder / f"{name}.json", value.model_dump_json())

    def engine_folder(self) -> Path:
        """A new one for the logs and steps of engines, behind those that there are: `engines/1`, `engines/2`, ..."""
        there = self.folder / _ENGINES
        there.mkdir(exist_ok=True)
        last = max((int(folder.name) for folder in there.iterdir() if folder.name.isdecimal()), default=0)
        made = there / str(last + 1)
        made.mkdir()
        return made

    @staticmethod
    def _name(key: CellKey) -> str:
        return f"{key.workload}.{key.load}.{key.arm.replace('/', '_')}.{key.repetition}"

    @staticmethod
    def _write(file: Path, text: str) -> None:
        part = file.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(file)
