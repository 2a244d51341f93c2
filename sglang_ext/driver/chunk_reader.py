"""Turns SGLang's streamed outputs, each of which repeats what came before, into `Chunk`s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sglang_ext.driver.engine_client import Chunk
from sglang_ext.driver.record import TokenLogprob, TopLogprob


class ChunkReader:
    """Reads the stream of one request."""

    def __init__(self) -> None:
        self._ids = 0
        self._logprobs = 0

    def read(self, output: Mapping[str, Any]) -> Chunk:
        meta = output["meta_info"]
        finish = meta.get("finish_reason")
        if finish is not None and finish.get("type") == "abort":
            return Chunk((), finish, meta)  # nobody reads the ids of an aborted output
        ids, logprobs = output["output_ids"][self._ids :], _logprobs(meta, self._logprobs)
        self._ids += len(ids)
        self._logprobs += len(logprobs)
        return Chunk(tuple(ids), finish, meta, tuple(logprobs))


def _logprobs(meta: Mapping[str, Any], start: int) -> Sequence[TokenLogprob]:
    tokens = (meta.get("output_token_logprobs") or [])[start:]
    tops = (meta.get("output_top_logprobs") or [])[start:] or [None] * len(tokens)
    return [
        TokenLogprob(id=token[1], logprob=token[0], top=[TopLogprob(id=t[1], logprob=t[0]) for t in top or []])
        for token, top in zip(tokens, tops, strict=True)
    ]
