"""`grape bench compile`: what the compiler costs on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click

from grape_dsl.compiler import compile
from grape_dsl.syntax import parse_text

_IMPORTS = "import lark, networkx, pydantic"
_CHAIN = 1_000
_TEXT_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
_FLOW = """\
workflow bench
add_variable(question, InputVar)
add_variable(query, IntermediateVar)
add_variable(answer, OutputVar)
add_task(rewrite, prompt = "Rewrite as one search query: {{question}}", task_output = query)
add_task(reply, prompt = "Answer the question. {{question}} Use: {{query}}", task_output = answer)
"""


@dataclass(frozen=True, slots=True)
class Seconds:
    """Times of one thing in seconds: the median, and the lowest and highest of `repetitions`."""

    median: float
    lowest: float
    highest: float
    repetitions: int

    @classmethod
    def of(cls, times: Sequence[float]) -> Seconds:
        return cls(median(times), min(times), max(times), len(times))

    def __str__(self) -> str:
        return f"{self.median * 1000:8.1f} ms  ({self.lowest * 1000:.1f} to {self.highest * 1000:.1f})"


@dataclass(frozen=True, slots=True)
class CompileBench:
    """Results.

    Args:
        cold_start: `grape compile` of a program with two tasks, as a process of its own.
        imports: `python -c "import lark, networkx, pydantic"`, likewise, in turns with it.
        chain: parsing and compiling 1,000 tasks, each reading the one before.
        text: parsing and compiling one task, by the characters of its prompt.
    """

    cold_start: Seconds
    imports: Seconds
    ratio: float
    chain: Seconds
    text: dict[int, Seconds]


@click.command("compile")
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    metavar="N",
    default=10,
    show_default=True,
    help="How often each thing is measured.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, times in seconds.")
def bench_compile(repetitions: int, as_json: bool) -> None:
    """Measure the compiler.

    Its cold start beside the import of its libraries, a chain of 1,000 tasks, and time against length of text.
    """
    result = measure(repetitions)
    click.echo(json.dumps(asdict(result), indent=2) if as_json else "\n".join(_lines(result)))


def measure(repetitions: int) -> CompileBench:
    """Measure everything; each process and each program once more than `repetitions`, the first to warm up."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "bench.flow"
        program.write_text(_FLOW, encoding="utf-8")
        grape = [sys.executable, "-c", "from grape_dsl.cli import main; main()", "compile", str(program)]
        imports = [sys.executable, "-c", _IMPORTS]
        started = [(_process(grape), _process(imports)) for _ in range(repetitions + 1)][1:]
    cold_start = Seconds.of([own for own, _ in started])
    reference = Seconds.of([theirs for _, theirs in started])
    return CompileBench(
        cold_start=cold_start,
        imports=reference,
        ratio=cold_start.median / reference.median,
        chain=_repeat(chain_program(_CHAIN), repetitions),
        text={size: _repeat(_text_program(size), repetitions) for size in _TEXT_SIZES},
    )


def chain_program(tasks: int) -> str:
    """A program of `tasks` tasks, each reading the output of the one before."""
    lines = ["workflow chain", "add_variable(v0, InputVar)"]
    for number in range(1, tasks + 1):
        kind = "OutputVar" if number == tasks else "IntermediateVar"
        lines.append(f"add_variable(v{number}, {kind})")
        lines.append(
            f'add_task(t{number}, prompt = "Improve this text: {{{{v{number - 1}}}}}", task_output = v{number})'
        )
    return "\n".join(lines) + "\n"


def _text_program(characters: int) -> str:
    sentence = "The quick brown fox jumps over the lazy dog.\n"
    text = sentence * (characters // len(sentence))
    head = "workflow text\nadd_variable(q, InputVar)\nadd_variable(a, OutputVar)\n"
    return f'{head}add_task(t, prompt = """\n{text}{{{{q}}}}""", task_output = a)\n'


def _repeat(program: str, repetitions: int) -> Seconds:
    def work() -> None:
        compile(parse_text(program).workflow)

    work()
    return Seconds.of([_clock(work) for _ in range(repetitions)])


def _process(command: list[str]) -> float:
    return _clock(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _clock(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _lines(result: CompileBench) -> list[str]:
    return [
        f"cold start of grape compile      {result.cold_start}",
        f'python -c "{_IMPORTS}" {result.imports}',
        f"ratio                            {result.ratio:8.2f}",
        f"chain of {_CHAIN:,} tasks             {result.chain}",
        *(f"prompt of {size:>10,} characters  {times}" for size, times in result.text.items()),
        f"medians (lowest to highest) of {result.chain.repetitions}, Python {sys.version.split()[0]}",
    ]
