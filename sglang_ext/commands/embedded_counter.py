"""`--tokenizer embedded`: token counts of the embedded model."""

from __future__ import annotations

import sys

from grape_dsl.cli import ExitCode
from grape_dsl.encoding import ChatEncoder
from sglang_ext.embedded_model import EmbeddedModelError, ensure


def embedded_counter() -> ChatEncoder:
    """The counter; the first time it fetches the model. Ends the command where that fails."""
    try:
        return ChatEncoder.from_folder(ensure())
    except EmbeddedModelError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(ExitCode.ENGINE) from None
