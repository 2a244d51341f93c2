"""Long texts that several prompts hold behind different beginnings, so that no prefix is shared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grape_dsl.graph.micro_task import Piece
from grape_dsl.graph.micro_task_graph import MicroTaskGraph

LONG_TEXT = 200
"""Characters from which a text counts as long."""

_SENTENCE = re.compile(r"[^\n.!?]*(?:[.!?]+[ \t]*\n?|\n|\Z)")


@dataclass(frozen=True, slots=True)
class SharedText:
    """A text that `tasks` all hold.

    Args:
        text: its beginning, at most 80 characters.
        size: characters of the whole text.
        saved: characters of prefill that each run saves if the text stands at the front of all
            these prompts, where its KV is computed once.
    """

    text: str
    size: int
    tasks: tuple[str, ...]
    saved: int


@dataclass(frozen=True, slots=True)
class _Prompt:
    """One prompt cut into sentences; `prefixes[i]` is equal in two prompts that agree up to and with unit `i`."""

    task: str
    units: tuple[Piece, ...]
    prefixes: tuple[int, ...]


_Places = dict[tuple[Piece, ...], list[tuple[int, int]]]
"""For each shortest long text the places where it starts: number of the prompt, number of the unit."""


def shared_texts(graph: MicroTaskGraph) -> list[SharedText]:
    """The shared texts of a graph, the largest saving first. Time is linear in the length of the prompts."""
    prompts = [_cut(task, [p for node in graph.chain(task) for p in node.pieces]) for task in graph.tasks()]
    places: _Places = {}
    for number, prompt in enumerate(prompts):
        for start, end in _windows(prompt.units):
            places.setdefault(prompt.units[start:end], []).append((number, start))
    holders = {text: frozenset(number for number, _ in found) for text, found in places.items()}
    seen: set[tuple[Piece, ...]] = set()
    shared = []
    for prompt in prompts:
        for start, end in _runs(prompt, holders):
            text = prompt.units[start:end]
            if text in seen:
                continue
            seen.add(text)
            _, first_end = next(_windows(text))
            entry = _shared_text(prompts, text, _first_places(prompts, text, places[text[:first_end]]))
            if entry is not None:
                shared.append(entry)
    return sorted(shared, key=lambda entry: -entry.saved)


def _cut(task: str, pieces: Sequence[Piece]) -> _Prompt:
    units: list[Piece] = []
    for piece in pieces:
        units.extend([u for u in _SENTENCE.findall(piece) if u] if isinstance(piece, str) else [piece])
    prefixes, prefix = [], 0
    for unit in units:
        prefix = hash((prefix, unit))
        prefixes.append(prefix)
    return _Prompt(task, tuple(units), tuple(prefixes))


def _windows(units: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """For each unit the shortest run of text from it that is long, if no hole, input or turn border cuts it."""
    end = size = 0
    for start, unit in enumerate(units):
        if end <= start:
            end, size = start, 0
        while size < LONG_TEXT and end < len(units) and isinstance(units[end], str):
            size += len(units[end])  # type: ignore[arg-type]
            end += 1
        if size >= LONG_TEXT:
            yield start, end
        if isinstance(unit, str):
            size -= len(unit)


def _runs(prompt: _Prompt, holders: dict[tuple[Piece, ...], frozenset[int]]) -> Iterator[tuple[int, int]]:
    """Stretches of units, none overlapping, whose every long text is held by the same two or more prompts."""
    first = last_start = end = -1
    held_by: frozenset[int] = frozenset()
    for start, stop in _windows(prompt.units):
        now = holders[prompt.units[start:stop]]
        if start == last_start + 1 and now == held_by:
            last_start, end = start, stop
            continue
        if len(held_by) > 1 and _length(prompt.units[first : min(end, start)]) >= LONG_TEXT:
            yield first, min(end, start)
        first, last_start, end, held_by = start, start, stop, now
    if len(held_by) > 1:
        yield first, end


def _first_places(
    prompts: Sequence[_Prompt], text: tuple[Piece, ...], candidates: Sequence[tuple[int, int]]
) -> dict[int, int]:
    """Where `text` starts first in each prompt that holds all of it."""
    found: dict[int, int] = {}
    for number, start in candidates:
        if number not in found and prompts[number].units[start : start + len(text)] == text:
            found[number] = start
    return found


def _shared_text(prompts: Sequence[_Prompt], text: tuple[Piece, ...], found: dict[int, int]) -> SharedText | None:
    beginnings = {prompts[number].prefixes[start + len(text) - 1] for number, start in found.items()}
    if len(beginnings) < 2:
        return None
    size = _length(text)
    head = "".join(unit for unit in text if isinstance(unit, str))[:80]
    return SharedText(head, size, tuple(prompts[number].task for number in found), size * (len(beginnings) - 1))


def _length(units: Sequence[Piece]) -> int:
    return sum(len(unit) for unit in units if isinstance(unit, str))
