"""Stats for reading."""

from __future__ import annotations

from collections.abc import Iterator

from grape_dsl.early_share import Stats
from grape_dsl.graph.piece_text import short


def stats_to_text(stats: Stats, unit: str) -> str:
    """Lines that end in a newline each; `unit` is that of the graph."""
    return "\n".join(_lines(stats, unit)) + "\n"


def _lines(stats: Stats, unit: str) -> Iterator[str]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in stats.micro_tasks.items())
    edges = ", ".join(f"{count} {kind}" for kind, count in stats.edges.items())
    yield f"stats: {stats.tasks} tasks, {sum(stats.micro_tasks.values())} micro-tasks ({kinds})"
    yield f"  edges: {edges}; depth: {stats.depth} decodes"
    yield "  of each prompt, before the last token of its upstream tasks (outputs count with their max_tokens):"
    width = max((len(prompt.task) for prompt in stats.prompts), default=0)
    for prompt in stats.prompts:
        yield f"    {prompt.task:<{width}}  {prompt.share:4.0%}  {prompt.early} of {prompt.total} {unit}"
        for advice in prompt.advice:
            yield f"    {'':<{width}}        {advice}"
    for shared in stats.shared_texts:
        where = f'{shared.size} characters, "{short(shared.text, 60, tail=0)}", stand in {", ".join(shared.tasks)}'
        yield f"  {where} behind different beginnings"
        yield f"    at the very front of these prompts they save the prefill of {shared.saved} characters in each run"
