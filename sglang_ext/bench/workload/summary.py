"""`summary`: a long text, part after part, each summary written from the one before and the next part."""

from __future__ import annotations

from functools import cache
from typing import Any

from grape_dsl.workflow import Workflow
from sglang_ext.bench.workload.counting import CountTokens
from sglang_ext.bench.workload.lengths import Length

PARTS, PART_TOKENS = 4, 400
LENGTHS = {f"summarise_{number}": Length(60) for number in range(1, PARTS + 1)}
_SYSTEM = """
You keep the summary of a long text that is given to you in parts. Write a summary of everything so far in at most five
sentences: what was known before, and what the new part adds. Keep names, numbers and decisions. Drop what later parts
have settled otherwise. Write the summary alone.
""".strip()


@cache
def chain(parts: int) -> Workflow:
    """The workflow for so many parts, 1 to 4."""
    flow = Workflow("summary", about="Summarises a text part after part")
    for number in range(1, parts + 1):
        last = number == parts
        flow.add_variable(f"part_{number}", "InputVar")
        flow.add_variable(f"summary_{number}", "OutputVar" if last else "IntermediateVar")
        before = "" if number == 1 else f"\nSummary so far:\n{{{{summary_{number - 1}}}}}"
        flow.add_task(
            f"summarise_{number}",
            f"New part:\n{{{{part_{number}}}}}{before}\nSummary:",
            system=_SYSTEM,
            task_output=f"summary_{number}",
            max_tokens=96,
            temperature=0.0,
        )
    return flow


def build(item: dict[str, Any], number: int, count: CountTokens) -> tuple[Workflow, dict[str, str]]:
    """At most 4 parts of at most 400 tokens, from a place in the text that depends on the job's number."""
    text = item["transcript"] if "transcript" in item else item["text"]
    parts = split(text, count)
    first = number * PARTS % len(parts)
    taken = (parts[first:] + parts[:first])[:PARTS]
    inputs = {f"part_{n}": f"[{number}.{n}] {part}" for n, part in enumerate(taken, 1)}
    return chain(len(taken)), inputs


def split(text: str, count: CountTokens) -> list[str]:
    """The text in parts of at most 400 tokens, cut between words; one part at least."""
    words = text.split()
    # The counter is asked for pieces of twenty words, not for every word.
    parts: list[list[str]] = [[]]
    tokens = 0
    for start in range(0, len(words), 20):
        piece = words[start : start + 20]
        size = count(" ".join(piece))
        if tokens + size > PART_TOKENS and parts[-1]:
            parts.append([])
            tokens = 0
        parts[-1] += piece
        tokens += size
    return [" ".join(part) for part in parts]
