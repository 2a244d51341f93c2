"""The CPU platform needs nothing but Python's packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Compiled by SGLang where a vocabulary is split over ranks.
PROGRAM = """
import torch
from sglang.srt.layers.vocab_parallel_embedding import get_masked_input_and_mask
ids, mask = get_masked_input_and_mask(torch.tensor([1, 7]), 0, 4, 0, 8, 8)
print(ids.tolist(), mask.tolist())
"""


def test_what_sglang_compiles_runs_without_a_compiler(tmp_path: Path) -> None:
    environment = os.environ | {"CXX": str(tmp_path / "no-compiler"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "[1, 0] [False, True]\n"
