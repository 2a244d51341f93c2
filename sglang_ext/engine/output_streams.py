"""Outputs of SGLang requests as their readers get them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_MATCHED_STR, FINISH_MATCHED_TOKEN

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.output_ids import Matched, reader_ids
from sglang_ext.tasks.outputs import MakeStream
from sglang_ext.tasks.streaming_output import StreamingOutput


@lru_cache(maxsize=4)
def codec(tokenizer: Any) -> TextEncoder:
    """The text encoder of an SGLang tokenizer; it has to be one of the `tokenizers` package."""
    return TextEncoder(tokenizer.backend_tokenizer)


def stream_factory(tokenizer: Any, stops: Sequence[str]) -> MakeStream:
    """Makes the streams of an output that ends at one of `stops`."""

    def make(left: bool, right: bool) -> StreamingOutput:
        return StreamingOutput(codec(tokenizer), stops, left, right)

    return make


def matched_stop(reason: Any) -> Matched:
    """What ended an output: the id or string of its finish reason, None for its length."""
    if isinstance(reason, FINISH_MATCHED_TOKEN):
        return reason.matched[-1] if isinstance(reason.matched, list) else int(reason.matched)
    if isinstance(reason, FINISH_MATCHED_STR):
        return str(reason.matched)
    return None


def reader_output(tokenizer: Any, output_ids: Sequence[int], matched: Matched) -> list[int]:
    """The ids that a reader gets of a finished output."""
    return reader_ids(output_ids, matched, codec(tokenizer))
