"""A plugin of SGLang's for a test's servers alone: found through PYTHONPATH, nothing is installed."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
GROUP = "sglang.srt.plugins"


def variables(folder: Path, target: str) -> dict[str, str]:
    """The environment of a server that loads `target`, a function such as `tests.engine.module:register`.

    Args:
        folder: gets the metadata by which Python finds the plugin.
    """
    name = target.partition(":")[0].rpartition(".")[2]
    info = folder / f"grape_{name}-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: grape-{name}\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {target}\n")
    paths = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), str(ROOT), str(folder)]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(path for path in paths if path))}
