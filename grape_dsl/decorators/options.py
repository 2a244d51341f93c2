"""Options as the decorators take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from grape_dsl.decorators.signature import refuse
from grape_dsl.diagnostics import naming_hint
from grape_dsl.task import Options, Slo, Timeout


class TaskOptions(TypedDict, total=False):
    """Options of a task, as in `Workflow.add_task`; of a workflow, the defaults of its tasks."""

    max_tokens: int
    temperature: float
    top_p: float
    stop: str | Sequence[str]
    seed: int
    logprobs: bool | int
    timeout: Timeout
    slo: Slo


def as_options(given: TaskOptions) -> Options:
    stop = given.get("stop")
    fields: dict[str, Any] = {**given, "stop": (stop,) if isinstance(stop, str) else stop and tuple(stop)}
    return Options(**fields)


def check_options(options: Mapping[str, object]) -> None:
    for name in options:
        if name not in TaskOptions.__annotations__:
            refuse("unknown-option", f"no option {name!r}", naming_hint(name, TaskOptions.__annotations__, "options"))
