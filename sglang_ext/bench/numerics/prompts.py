"""The prompts: stretches of real text, each with a note that another task writes about it."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grape_dsl.compiler import CompiledWorkflow, compile
from grape_dsl.encoding import ChatEncoder
from grape_dsl.workflow import Workflow
from sglang_ext.bench.run_work import RunWork
from sglang_ext.bench.workload.counting import estimate
from sglang_ext.bench.workload.items import Items
from sglang_ext.bench.workload.workloads import WORKLOADS
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.prompts import plan_tasks

WRITER, READER = "writer", "reader"
TOP = 20
"""Logprobs that are compared: of so many tokens that are most likely to come first."""
_WORDS, _START_WORDS = 24, 12
_SEED = 0


def program(edge_weight: int) -> CompiledWorkflow:
    """Two tasks; what the first one writes stands in the middle of the second one's prompt."""
    flow = Workflow("numerics", about="A note on a text, and what comes of both")
    flow.add_variable("start", "InputVar")
    flow.add_variable("text", "InputVar")
    flow.add_variable("note", "IntermediateVar")
    flow.add_variable("answer", "OutputVar")
    flow.add_task(WRITER, "Say what this is about: {{start}}", task_output="note")
    flow.add_task(READER, "{{text}}\nA note: {{note}}\nGo on.", task_output="answer", logprobs=TOP)
    return compile(flow, edge_weight=edge_weight)


def works(
    number: int, folder: Path | None, encoder: ChatEncoder, edge_weight: int, note: int, answer: int
) -> list[RunWork]:
    """So many runs of the program, the same each time.

    Args:
        folder: real inputs; None: the built-in ones, which are few, so that stretches overlap.
        note, answer: tokens that the tasks write.

    Raises:
        InputError: the inputs cannot be used.
    """
    compiled = program(edge_weight)
    found = []
    for text in stretches(texts(folder), number):
        inputs = {"text": text, "start": " ".join(text.split()[:_START_WORDS])}
        plans = plan_tasks(compiled, inputs, encoder)
        found.append(RunWork(plans, {WRITER: note, READER: answer}, encoder.text))
    return found


def texts(folder: Path | None) -> list[str]:
    """What the workloads' inputs say, those of all workloads in turns. Raises InputError if they cannot be used."""
    items = Items(folder)
    by_workload = [[(name, item) for item in items.read(w.built_in, w.patterns)] for name, w in WORKLOADS.items()]
    longest = max(map(len, by_workload))
    return [_text(*own[place]) for place in range(longest) for own in by_workload if place < len(own)]


def stretches(given: Sequence[str], number: int) -> list[str]:
    """Stretches of at most 24 words, from a text after the other; another place in it each time."""
    if not given:
        raise InputError("there are no inputs to make prompts of")
    chance = random.Random(_SEED)
    found = []
    for place in range(number):
        words = re.findall(r"\S+\s*", given[place % len(given)])
        first = chance.randrange(max(1, len(words) - _WORDS + 1))
        found.append("".join(words[first : first + _WORDS]).strip())
    return found


def _text(workload: str, item: dict[str, Any]) -> str:
    try:
        _, inputs = WORKLOADS[workload].build(item, 0, estimate)
    except (KeyError, TypeError) as error:
        raise InputError(f"an input of {workload!r} cannot be used: {type(error).__name__}: {error}") from None
    return "\n".join(inputs.values())
