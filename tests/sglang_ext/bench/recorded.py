"""Samples as a measurement gives them."""

from __future__ import annotations

from collections.abc import Sequence

from sglang_ext.bench.sample import EngineTimes, Sample


def sample(gap: float, completion: float, step: float = 0.05, **more: object) -> Sample:
    values = {"first_token_s": 0.1, "answer_step_s": 0.06, "prompt_tokens": 1288, "cached_tokens": 0, **more}
    return Sample.model_validate({"gap_s": gap, "completion_s": completion, "step_s": step, **values})


def samples(gaps: Sequence[float], completions: Sequence[float], step: float = 0.05) -> list[Sample]:
    return [sample(g, c, step) for g, c in zip(gaps, completions, strict=True)]


def held(gap: float, completion: float) -> Sample:
    times = EngineTimes(gap_s=gap - 0.001, early_tokens=1264, late_pieces=[(0.001, gap - 0.001, 24)])
    return sample(gap, completion, engine=times)
