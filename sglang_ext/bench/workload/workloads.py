"""The workloads by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grape_dsl.diagnostics import nearest
from grape_dsl.workflow import Workflow
from sglang_ext.bench.workload import summary
from sglang_ext.bench.workload.counting import CountTokens
from sglang_ext.bench.workload.items import BUILT_IN
from sglang_ext.bench.workload.lengths import Length
from sglang_ext.driver.errors import InputError

Build = Callable[[dict[str, Any], int, CountTokens], tuple[Workflow, dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of run.

    Args:
        build: the workflow and its inputs for an item, the number of the job and a counter of tokens. The number goes
            into the inputs, so that no two jobs share more than the program's own text.
        lengths: of the tasks' outputs, by the name of the task.
        built_in: name of the package's inputs.
        patterns: files of a folder of inputs.
    """

    name: str
    build: Build
    lengths: Mapping[str, Length]
    built_in: str
    patterns: tuple[str, ...]


def find(name: str) -> Workload:
    """Raises InputError if there is no such workload."""
    if name not in WORKLOADS:
        close = nearest(name, list(WORKLOADS))
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(WORKLOADS)}"
        raise InputError(f"no workload {name!r}; {hint}")
    return WORKLOADS[name]


def _program(name: str) -> Workflow:
    if name not in _loaded:
        from grape_dsl.syntax import load

        _loaded[name] = load(BUILT_IN / f"{name}.flow").workflow
    return _loaded[name]


_loaded: dict[str, Workflow] = {}


def _search(item: dict[str, Any], number: int, count: CountTokens) -> tuple[Workflow, dict[str, str]]:
    paragraphs = item["context"] if "context" in item else item["paragraphs"]
    lines = [f"{n}. {p['title']}: {p['text']}" for n, p in enumerate(paragraphs, 1)]
    inputs = {"question": f"({number}) {item['question']}", "paragraphs": f"Collection {number}\n" + "\n".join(lines)}
    return _program("search"), inputs


def _code(item: dict[str, Any], number: int, count: CountTokens) -> tuple[Workflow, dict[str, str]]:
    request = item["prompt"] if "prompt" in item else "\n".join((item["text"], "Tests:", *item["test_list"]))
    return _program("code"), {"request": f"# Request {number}\n{request}"}


def _chat(item: dict[str, Any], number: int, count: CountTokens) -> tuple[Workflow, dict[str, str]]:
    message = item.get("message") or f"Explain this to somebody who is new to the field:\n{item['abstract']}"
    return _program("chat"), {"message": f"({number}) {message}"}


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "search",
            _search,
            {"rewriter": Length(20), "searcher": Length(64), "generator": Length(80), "safety_checker": Length(14)},
            "search.jsonl",
            ("search_*.jsonl",),
        ),
        Workload(
            "code",
            _code,
            {
                "product_planner": Length(72),
                "framework_designer": Length(64),
                "project_planner": Length(72),
                "code_generator": Length(140),
                "test_validator": Length(48),
            },
            "code.jsonl",
            ("code_*.jsonl",),
        ),
        Workload("summary", summary.build, summary.LENGTHS, "summary.jsonl", ("summary_qmsum_*.jsonl",)),
        Workload("chat", _chat, {"assistant": Length(96, 2.5)}, "chat.jsonl", ("summary_scitldr_*.jsonl",)),
    )
}
