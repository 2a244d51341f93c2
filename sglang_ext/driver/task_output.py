"""A task's output as it grows: ids as its readers get them, and the text that they decode to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grape_dsl.encoding import ChatEncoder
from grape_dsl.task import Options
from sglang_ext.tasks.output_ids import Matched, TextCodec, reader_ids, strip_ids
from sglang_ext.tasks.streaming_output import StreamingOutput


class TextStream:
    """Decodes ids as they come. What was given never changes: a character whose tokens are incomplete waits."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []
        # Decoding begins a token or more before the news: some tokenizers write a token's
        # white space only behind another one.
        self._start = 0
        self._given = 0

    def push(self, ids: Sequence[int], *, last: bool = False) -> str:
        """The text that `ids` bring; with `last`, also what an incomplete character leaves."""
        self._ids.extend(ids)
        before = self._decode(self._ids[self._start : self._given])
        text = self._decode(self._ids[self._start :])
        if text.endswith("\ufffd") and not last:
            return ""
        self._start, self._given = self._given, len(self._ids)
        return text[len(before) :]


class TaskOutput:
    """The output of one task.

    Args:
        codec: text to ids and back, special tokens by name.
        stops: the task's stop strings.
        decode: ids to the text that people get.
    """

    def __init__(self, codec: TextCodec, stops: Sequence[str], decode: Callable[[Sequence[int]], str]) -> None:
        self.ids: list[int] = []
        self.text = ""
        self._codec = codec
        self._stream = StreamingOutput(codec, stops)
        self._decoded = TextStream(decode)
        self._raw: list[int] = []
        self._matched: Matched = None

    def take(self, ids: Sequence[int], finish: Mapping[str, Any] | None) -> tuple[tuple[int, ...], str]:
        """Take raw ids, the last ones with SGLang's finish reason; returns what is new and settled."""
        self._raw.extend(ids)
        if finish is not None and finish.get("type") == "abort":
            return (), ""
        if finish is None:
            new = self._stream.push(ids)
        else:
            self._matched = finish.get("matched")
            new = self._stream.finish(self._raw, self._matched)
        text = self._decoded.push(new, last=finish is not None)
        self.ids.extend(new)
        self.text += text
        return tuple(new), text

    def reader_ids(self, left: bool, right: bool) -> list[int]:
        """The finished output's ids for a reader that strips white space at these sides."""
        return strip_ids(reader_ids(self._raw, self._matched, self._codec), left, right, self._codec)


class OutputReader:
    """Makes the outputs of one model's tasks."""

    def __init__(self, encoder: ChatEncoder) -> None:
        self._encoder = encoder

    def output(self, options: Options) -> TaskOutput:
        return TaskOutput(self._encoder.text, options.stop or (), self._encoder.decode)
