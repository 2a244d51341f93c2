"""What can go wrong with the embedded model, and how progress is told."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class EmbeddedModelError(Exception):
    """The embedded model cannot be made ready. The message says what failed, where, and what to do."""


class Step(StrEnum):
    """What `ensure` is doing; the comments give the unit of progress."""

    WAIT = "wait"  # for another process that is doing the same; no figures (0 of 0)
    DOWNLOAD = "download"  # bytes
    CONVERT = "convert"  # tensors
    CHECK = "check"  # bytes


Progress = Callable[[Step, int, int], None]
"""Called with a step, what is done, and the total; often, so it must be quick."""

INSTEAD = "or pass a model of your own with --model PATH"
