"""Tasks: the model calls of a workflow, and their options."""

from __future__ import annotations

from dataclasses import dataclass, field

from grape_dsl.diagnostics import Span
from grape_dsl.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Latency:
    """A latency bound: `seconds`, or `steps` times the unloaded decode step; exactly one is set."""

    seconds: float | None = None
    steps: float | None = None


@dataclass(frozen=True, slots=True)
class Slo:
    """Service level objective of a task: time to first token, time between tokens."""

    ttft: Latency | None = None
    tbt: Latency | None = None


@dataclass(frozen=True, slots=True)
class Timeout:
    """Time limits of a task in seconds.

    Args:
        run: from the moment the task's prompt is complete to its end.
        idle: from one output token to the next.
    """

    run: float | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a task; in a workflow's header, the defaults of its tasks. None: not given.

    Args:
        stop: stop strings; the output ends before the first that appears.
        logprobs: return the logprobs of output tokens; an integer asks for that many alternatives too.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    logprobs: bool | int | None = None
    timeout: Timeout | None = None
    slo: Slo | None = None

    def over(self, defaults: Options) -> Options:
        """These options, with what is not given taken from `defaults`."""
        merged = {}
        for name in self.__slots__:
            own = getattr(self, name)
            merged[name] = own if own is not None else getattr(defaults, name)
        return Options(**merged)


@dataclass(frozen=True, slots=True)
class Task:
    """One model call: `prompt` in, variable `output` out. `options` as written, defaults not merged.

    Args:
        span: the task's name in its statement.
        output_span: the name of `output` there.
    """

    name: str
    prompt: Prompt
    output: str
    options: Options = Options()
    span: Span | None = field(default=None, compare=False)
    output_span: Span | None = field(default=None, compare=False)
