"""Random runs at the level of the wire: tasks with holes, as the engine gets them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sglang_ext.tasks.hint import Identity, Known, OutputHole, Strip, TaskHint, new_run_id, request_id

Encode = Any
WORDS = [
    "the",
    "river",
    "runs",
    "past",
    "old",
    "houses",
    "where",
    "people",
    "sell",
    "bread",
    "and",
    "fish",
    "every",
    "morning",
    "while",
    "boats",
    "carry",
    "stone",
    "north",
    "for",
    "a",
    "bridge",
    "that",
    "nobody",
    "has",
    "finished",
    "because",
    "rain",
    "and",
    "wind",
    "took",
    "three",
    "arches",
    "in",
    "one",
    "night",
    "so",
    "builders",
    "wait",
    "until",
    "spring",
    "brings",
    "lower",
    "water",
    "17",
    "carts",
    "250",
    "nails",
    "and",
    "new",
    "rope",
    "from",
    "far",
    "away",
]


@dataclass
class Graph:
    """Tasks of one run, each with its sampling parameters."""

    run: str
    tasks: list[TaskHint]
    sampling: dict[str, dict[str, Any]] = field(default_factory=dict)

    def rid(self, task: str) -> str:
        return next(request_id(self.run, t.index) for t in self.tasks if t.task == task)


def build(tasks: dict[str, tuple[Sequence[Known | OutputHole], dict[str, Any]]], **common: Any) -> Graph:
    """A graph of (segments, sampling parameters) by task name, upstreams first."""
    run = new_run_id()
    readers: dict[str, list[str]] = {name: [] for name in tasks}
    for name, (segments, _) in tasks.items():
        for segment in segments:
            if isinstance(segment, OutputHole):
                readers[segment.task].append(name)
    hints = [
        TaskHint(
            run=run,
            task=name,
            index=i,
            tasks=len(tasks),
            readers=readers[name],
            segments=[s for s in segments if isinstance(s, OutputHole) or s.ids],
            **common,
        )
        for i, (name, (segments, _)) in enumerate(tasks.items())
    ]
    sampling = {name: {"temperature": 0, "max_new_tokens": 16, **params} for name, (_, params) in tasks.items()}
    return Graph(run, hints, sampling)


def text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def random_graph(seed: int, encode: Encode, *, tokens: tuple[int, int] = (48, 64), fan: int = 3) -> Graph:
    """A run of 2 to 8 tasks: fan-in, fan-out, depth to 6, holes anywhere, weights 1 to 64.

    Args:
        encode: text to ids without special tokens.
        tokens: least and most output tokens of an upstream; most outputs reach them.
    """
    rng = random.Random(seed)
    count = rng.randint(2, 8)
    depth: dict[str, int] = {}
    tasks: dict[str, tuple[list[Known | OutputHole], dict[str, Any]]] = {}
    for i in range(count):
        name = f"t{i}"
        usable = [n for n in tasks if depth[n] < 6]
        chosen = rng.sample(usable, min(len(usable), rng.randint(1, fan))) if i else []
        segments: list[Known | OutputHole] = []
        if rng.random() < 0.8 or not chosen:
            segments.append(Known(ids=encode(text(rng, rng.randint(3, 120)))))
        for upstream in chosen:
            transform = Strip() if rng.random() < 0.4 else Identity()
            segments.append(
                OutputHole(task=upstream, weight=rng.choice([1, 2, 3, 5, 8, 16, 16, 32, 64]), transform=transform)
            )
            if rng.random() < 0.7:
                segments.append(Known(ids=encode(" " + text(rng, rng.randint(1, 30)))))
        params: dict[str, Any] = {"max_new_tokens": rng.randint(*tokens)}
        if rng.random() < 0.25:
            params["stop"] = rng.sample(["\n", ".", " a", "ing", "e s"], rng.randint(1, 2))
        depth[name] = 1 + max((depth[u] for u in chosen), default=0)
        tasks[name] = (segments, params)
    return build(tasks)
