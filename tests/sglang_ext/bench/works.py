"""Runs for the benchmarks' clients, built in few words. Known ids of each task are its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grape_dsl.task import Options
from sglang_ext.bench.run_work import RunWork
from sglang_ext.driver.prompts import TaskPlan
from sglang_ext.tasks.hint import Known, OutputHole, Strip


class NoCodec:
    """Ids of letters; 0 is a space. What is stripped is decoded, so that a test sees where it was needed."""

    def encode(self, text: str) -> list[int]:
        return [0 if letter == " " else ord(letter) for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(" " if i == 0 else chr(i) for i in ids)


def work(prompts: Mapping[str, Sequence[int | str]], outputs: Mapping[str, int], strip: bool = False) -> RunWork:
    """Args: prompts: of each task the number of known ids, or the task whose output stands there."""
    plans = {}
    for index, (name, parts) in enumerate(prompts.items()):
        transform = {"transform": Strip()} if strip else {}
        segments = tuple(
            OutputHole(task=part, **transform) if isinstance(part, str) else Known(ids=[1000 * (index + 1)] * part)
            for part in parts
        )
        readers = tuple(other for other, own in prompts.items() if name in own)
        plans[name] = TaskPlan(name, index, name, Options(), segments, readers)
    return RunWork(plans, outputs, NoCodec())
