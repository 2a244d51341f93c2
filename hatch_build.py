"""Makes the parse tables when the package is built, so that nobody waits for them when it is used."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ParseTables(BuildHookInterface):
    """Writes grammar/flow.tables; the wheel takes it along with the grammar."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        # By path: importing the package would need all of its dependencies in the build environment.
        spec = importlib.util.spec_from_file_location("tables", root / "grape_dsl" / "syntax" / "tables.py")
        assert spec is not None
        assert spec.loader is not None
        tables = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tables)
        tables.write(root / "grammar" / "flow.lark")
