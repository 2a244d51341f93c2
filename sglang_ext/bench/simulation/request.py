"""A request inside the simulated engine: a prompt that may still grow, and what was computed of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sglang_ext.bench.simulation.prefix_cache import Node, Span
from sglang_ext.bench.workload.job import Job, TaskShape


@dataclass(eq=False, slots=True)
class Run:
    """A job under way.

    Attributes:
        submitted_s: when it was submitted.
        requests: the tasks' requests so far, by the task's name; those that only fill the cache are not among them.
        token_s: when its first token was delivered; None before.
    """

    rid: str
    job: Job
    submitted_s: float
    requests: dict[str, Request] = field(default_factory=dict)
    token_s: float | None = None

    def ended(self, task: str) -> bool:
        request = self.requests.get(task)
        return request is not None and request.finished

    def written(self, task: str) -> int:
        """Tokens of a task's output that were delivered."""
        request = self.requests.get(task)
        return 0 if request is None else len(request.token_s)

    @property
    def over(self) -> bool:
        return all(self.ended(task.name) for task in self.job.tasks)

    def key(self, task: str) -> str:
        """The key of a task's output as text."""
        return f"{self.rid}/{task}"


@dataclass(eq=False, slots=True)
class Request:
    """One request.

    Args:
        rid: its name; no two requests have the same.
        order: number of arrival.
        output: tokens that it writes; 0: it only fills the cache.
        limit: the most that it may write, which is all that the engine knows.
        urgency: place in a queue with priorities, small first.
        spans: the prompt as far as it is known.
        known: its tokens.
        fixed: tokens before the first hole; published as soon as they are computed.
        weight: the edge weight that its program asks for.
        complete_s: when the prompt was complete, None if it is not.

    Attributes:
        computed: tokens of the prompt in KV.
        early: it began to hold KV before its prompt was complete, and holds it.
        private: of these, tokens that are not in the tree.
        found: tokens that the cache had when it was asked last.
        launched: output tokens that steps were formed for.
        written: tokens of KV that decodes took.
        token_s: when each output token was delivered.
        used_s: when a piece of it was computed last.
        waited: steps in a row that found it ready and took nothing of it.
        finished: its last token was delivered, and its KV given back.
    """

    rid: str
    run: Run
    shape: TaskShape
    order: int
    output: int
    limit: int
    arrived_s: float
    urgency: int = 0
    spans: list[Span] = field(default_factory=list)
    known: int = 0
    fixed: int = 0
    weight: int = 1
    complete_s: float | None = None
    tbt_s: float | None = None
    deadline_s: float | None = None
    computed: int = 0
    early: bool = False
    private: int = 0
    found: int = 0
    node: Node | None = None
    launched: int = 0
    written: int = 0
    token_s: list[float] = field(default_factory=list)
    used_s: float = 0.0
    waited: int = 0
    finished: bool = False

    @property
    def complete(self) -> bool:
        return self.complete_s is not None

    @property
    def visible(self) -> int:
        """How much of the prompt may be prefilled: what may turn out to be its last token waits for the last piece."""
        return self.known if self.complete_s is not None else max(0, self.known - 1)

    @property
    def context(self) -> int:
        """Tokens of KV that a decode of it reads."""
        return self.computed + self.launched

    @property
    def has_row(self) -> bool:
        return self.node is not None

    def extend(self, spans: Iterable[Span]) -> None:
        """Append known text; a stretch with the key of the last one makes that longer."""
        for key, tokens in spans:
            if not tokens:
                continue
            if self.spans and self.spans[-1][0] == key:
                self.spans[-1] = (key, self.spans[-1][1] + tokens)
            else:
                self.spans.append((key, tokens))
            self.known += tokens
