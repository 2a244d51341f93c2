"""What the engine's event log says about early prefill, hole by hole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.hint import Known
from sglang_ext.tasks.output_ids import strip_ids
from tests.engine.client import Answer
from tests.engine.graphs import Graph
from tests.engine.reference import reader_output

Events = list[dict[str, Any]]
# Tokens that a stop string or white space may hold back at an output's end.
HELD_BACK = 8


@dataclass
class Holes:
    """Holes by what could be seen of them.

    `late`: the reader came after the first token. `open_in_time`: it could stream. `two_chunks`: two or
    more chunks were in KV in time. `long`: 48 tokens or more, and longer than a chunk.
    """

    all: int = 0
    late: int = 0
    open_in_time: int = 0
    two_chunks: int = 0
    long: int = 0


def check_streaming(
    graph: Graph, answers: dict[str, Answer], events: Events, codec: TextEncoder, *, page: int = 1
) -> Holes:
    """Each hole's whole chunks were in KV before its upstream's last token was known.

    A hole behind one that was still open then cannot be prefilled, nor can one whose reader reached
    the engine after its upstream's first token; they are counted and passed over.
    """
    mine = [event for event in events if event["run"] == graph.run]
    ended = {e["task"]: e["t"] for e in mine if e["event"] == "state" and e["state"] == "finished"}
    started: dict[str, float] = {}
    for event in mine:
        if event["event"] == "tokens":
            started.setdefault(event["task"], event["t"])
    holes = Holes()
    for hint in graph.tasks:
        arrived = min(e["t"] for e in mine if e["task"] == hint.task)
        pieces = [e for e in mine if e["event"] == "piece" and e["task"] == hint.task]
        position, closed = 0, float("-inf")
        for i, segment in enumerate(hint.segments):
            if isinstance(segment, Known):
                position += len(segment.ids)
                continue
            output = strip_ids(reader_output(answers[segment.task], codec), *segment.sides, codec)
            end = ended[segment.task]
            holes.all += 1
            holes.long += len(output) >= 48 and len(output) > segment.weight
            late = arrived >= started.get(segment.task, end)
            holes.late += late
            if closed < end and not late:
                holes.open_in_time += 1
                held_back = HELD_BACK if any(segment.sides) or graph.sampling[segment.task].get("stop") else 0
                whole = max(0, len(output) - 1 - held_back) // segment.weight * segment.weight
                in_kv = max((p["end"] for p in pieces if p["t"] < end), default=0)
                # A prompt that may end here keeps its last token for the piece that samples behind it.
                spare = page - 1 + (not any(isinstance(s, Known) for s in hint.segments[i + 1 :]))
                if whole:
                    assert in_kv >= position + whole - spare, (hint.task, segment.task, in_kv, position, whole)
                holes.two_chunks += whole >= 2 * segment.weight
            closed = max(closed, end)
            position += len(output)
    return holes


def early_beside_decodes(events: Events) -> int:
    """The most tokens of early prefill in one step between two of a decoding task's tokens.

    A task decodes for sure in the steps between its first and its last token.
    """
    decoding: dict[tuple[str, str], list[float]] = {}
    for event in events:
        if event["event"] == "tokens":
            decoding.setdefault((event["run"], event["task"]), []).append(event["t"])
    spans = [(times[0], times[-1]) for times in decoding.values()]
    steps: dict[int, int] = {}
    for event in events:
        incomplete = event["event"] == "piece" and not event["complete"]
        if incomplete and any(first < event["t"] < last for first, last in spans):
            steps[event["step"]] = steps.get(event["step"], 0) + event["end"] - event["start"]
    return max(steps.values(), default=0)
