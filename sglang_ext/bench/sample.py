"""One measured chain."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from sglang_ext.bench.token_stream import TokenStream


class EngineTimes(BaseModel):
    """What the engine itself says of the switch, where it runs the extension and holds B.

    Args:
        gap_s: from A's last token to B's first, on the engine's clock.
        early_tokens: of B's prompt, in KV before A's last token was known.
        late_pieces: pieces of B's prompt that were not done then: [start, end, tokens], seconds after A's last token.
    """

    model_config = ConfigDict(frozen=True)

    gap_s: float
    early_tokens: int
    late_pieces: list[tuple[float, float, int]]


class Sample(BaseModel):
    """Times in seconds on the client's clock, at the arrival of tokens.

    Args:
        gap_s: from A's last token to B's first.
        completion_s: from the chain's submission to B's last token.
        first_token_s: from the chain's submission to A's first token.
        step_s, answer_step_s: median time between two tokens of A, and of B.
        prompt_tokens: B's, as the engine counts them.
        cached_tokens: of these, found in the prefix cache when B was submitted or, for a held B, before the run.
    """

    model_config = ConfigDict(frozen=True)

    gap_s: float
    completion_s: float
    first_token_s: float
    step_s: float
    answer_step_s: float
    prompt_tokens: int
    cached_tokens: int
    engine: EngineTimes | None = None

    @classmethod
    def of(cls, submitted: float, a: TokenStream, b: TokenStream) -> Sample:
        return cls(
            gap_s=b.stamps[0] - a.stamps[-1],
            completion_s=b.stamps[-1] - submitted,
            first_token_s=a.stamps[0] - submitted,
            step_s=a.step_s,
            answer_step_s=b.step_s,
            prompt_tokens=b.meta["prompt_tokens"],
            cached_tokens=b.meta["cached_tokens"],
            engine=_engine_times(a.meta, b.meta),
        )


def _engine_times(a: Any, b: Any) -> EngineTimes | None:
    if "grape" not in b:
        return None
    (upstream,), (own,) = a["grape"], b["grape"]
    end = upstream["end_s"]
    return EngineTimes(
        gap_s=own["first_token_s"] - end,
        early_tokens=own["early_tokens"],
        late_pieces=[(start - end, done - end, tokens) for start, done, tokens, _ in own["pieces"] if done > end],
    )
