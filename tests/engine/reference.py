"""The reference: stock SGLang on the monolithic prompt, and what may differ from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.hint import Known
from sglang_ext.tasks.output_ids import Matched, reader_ids, strip_ids
from tests.engine.client import Answer, generate
from tests.engine.graphs import Graph

# Two logits this close may change places when the same sum is taken in another order.
NEAR_TIE = 1e-4
# Of all tokens at most this share may differ so.
MOST_NEAR_TIES = 1 / 20_000


@dataclass
class Tally:
    """What equality was found over: tasks, output tokens, and near ties by task."""

    tasks: int = 0
    tokens: int = 0
    near_ties: list[str] = field(default_factory=list)


def matched(answer: Answer) -> Matched:
    reason: Any = answer.meta["finish_reason"]
    found = reason.get("matched")
    return found[-1] if isinstance(found, list) else found


def reader_output(answer: Answer, codec: TextEncoder) -> list[int]:
    return reader_ids(answer.output_ids, matched(answer), codec)


def splice(graph: Graph, task: str, answers: dict[str, Answer], codec: TextEncoder) -> list[int]:
    """The prompt of `task` as one piece, from the outputs that its upstreams gave their clients."""
    hint = next(t for t in graph.tasks if t.task == task)
    prompt: list[int] = []
    for segment in hint.segments:
        if isinstance(segment, Known):
            prompt += segment.ids
        else:
            output = reader_output(answers[segment.task], codec)
            prompt += strip_ids(output, *segment.sides, codec)
    return prompt


def compare(stock_url: str, graphs: Sequence[Graph], answers: Sequence[dict[str, Answer]], codec: TextEncoder) -> Tally:
    """Hold every task of every run against stock SGLang; AssertionError for a real difference."""
    tally = Tally()
    names, prompts, samplings, outputs = [], [], [], []
    for graph, got in zip(graphs, answers, strict=True):
        for hint in graph.tasks:
            answer = got[hint.task]
            assert answer.ok, f"{hint.task}: {answer.message}"
            prompt = splice(graph, hint.task, got, codec)
            assert answer.meta["prompt_tokens"] == len(prompt), f"{hint.task}: another prompt than its splice"
            assert answer.figures["output_ids"] == reader_output(answer, codec)
            names.append(f"{graph.run}/{hint.task}")
            prompts.append(prompt)
            samplings.append(graph.sampling[hint.task])
            outputs.append(answer.output_ids)
    references = generate(stock_url, prompts, samplings)
    for name, prompt, ours, reference in zip(names, prompts, outputs, references, strict=True):
        theirs = reference["output_ids"]
        tally.tasks += 1
        tally.tokens += len(theirs)
        if ours != theirs:
            where = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
            assert where is not None, f"{name}: {len(ours)} tokens where stock has {len(theirs)} of the same"
            gap = _gap(stock_url, prompt + theirs[:where])
            assert gap <= NEAR_TIE, f"{name}: token {where} is {ours[where]}, stock has {theirs[where]}, gap {gap}"
            tally.near_ties.append(name)
    assert len(tally.near_ties) <= max(1, tally.tokens * MOST_NEAR_TIES), tally.near_ties
    return tally


def _gap(url: str, prompt: list[int]) -> float:
    """How far apart the two best next tokens are, in logits."""
    (answer,) = generate(
        url, [prompt], [{"temperature": 0, "max_new_tokens": 1}], return_logprob=True, top_logprobs_num=2
    )
    (first, second) = answer["meta_info"]["output_top_logprobs"][0]
    return float(first[0] - second[0])
