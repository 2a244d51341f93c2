from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from grape_dsl.encoding import TextEncoder


@pytest.fixture(scope="session")
def codec(embedded_model: Path) -> TextEncoder:
    return TextEncoder(Tokenizer.from_file(str(embedded_model / "tokenizer.json")))
