"""What a finished task says of itself in its output's `meta_info`."""

from __future__ import annotations

from typing import Any

from sglang_ext.engine.output_streams import matched_stop, reader_output
from sglang_ext.engine.task_request import TaskRequest


def report(req: TaskRequest, ttft_s: float | None, tbt_s: float | None) -> dict[str, Any]:
    """The figures of a finished task; times are seconds on the engine's clock.

    `early_tokens` were in KV before the last upstream token was known, without those that were in the
    cache before the run; `early_chunks` counts the pieces among them that held streamed tokens.
    `output_ids` is what a reader gets. `pieces` lists the prompt's pieces in the order of their
    launch, without streamed ones whose KV was given up: start and end time, number of tokens, and
    whether the prompt was still open. `slo` has the task's objectives as they were at its end, its time
    from the complete prompt to the first token, and its longest time between two tokens.

    Args:
        ttft_s, tbt_s: its objectives.
    """
    early_tokens, early_chunks = req.early or (0, 0)
    complete = req.complete_s if req.complete_s is not None else req.submitted_s
    pieces = [
        [p.launched_s, p.done_s or req.first_token_s or p.launched_s, p.end - p.start, p.launched_s < complete]
        for p in req.pieces
    ]
    return {
        "early_tokens": early_tokens,
        "early_chunks": early_chunks,
        "cached_tokens": req.cached_before_run,
        "submitted_s": req.submitted_s,
        "complete_s": req.complete_s,
        "first_token_s": req.first_token_s,
        "end_s": req.last_token_s,
        "output_ids": reader_output(req.tokenizer, req.output_ids_through_stop, matched_stop(req.finished_reason)),
        "pieces": pieces,
        "slo": {
            "ttft_bound_s": ttft_s,
            "tbt_bound_s": tbt_s,
            "ttft_s": None if req.first_token_s is None else req.first_token_s - complete,
            "worst_gap_s": req.worst_gap_s,
        },
    }
