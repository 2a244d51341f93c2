"""SGLang's outputs as chunks."""

from __future__ import annotations

from sglang_ext.driver.chunk_reader import ChunkReader
from sglang_ext.driver.record import TokenLogprob, TopLogprob


def test_each_chunk_has_what_is_new() -> None:
    reader = ChunkReader()
    pairs = [(-0.1, 5, None), (-0.2, 6, None), (-0.3, 7, None)]
    tops = [[(-0.1, 5, None), (-2.0, 9, None)], None, [(-0.3, 7, None)]]
    chunks = []
    for count in (1, 1, 3):
        meta = {"output_token_logprobs": pairs[:count], "output_top_logprobs": tops[:count], "finish_reason": None}
        chunks.append(reader.read({"output_ids": [5, 6, 7][:count], "meta_info": meta}))
    assert [chunk.ids for chunk in chunks] == [(5,), (), (6, 7)]
    assert [list(chunk.logprobs) for chunk in chunks] == [
        [TokenLogprob(id=5, logprob=-0.1, top=[TopLogprob(id=5, logprob=-0.1), TopLogprob(id=9, logprob=-2.0)])],
        [],
        [TokenLogprob(id=6, logprob=-0.2), TokenLogprob(id=7, logprob=-0.3, top=[TopLogprob(id=7, logprob=-0.3)])],
    ]


def test_an_aborted_output_has_no_ids() -> None:
    meta = {"finish_reason": {"type": "abort", "message": "gone"}}
    chunk = ChunkReader().read({"output_ids": [1, 2], "meta_info": meta})
    assert chunk.ids == () and chunk.finish == meta["finish_reason"]
