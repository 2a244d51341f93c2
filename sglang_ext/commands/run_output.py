"""What `grape run` writes to standard output: outputs as they come, or one JSON record per run."""

from __future__ import annotations

from typing import IO, Protocol

from grape_dsl.variables import VariableKind
from grape_dsl.workflow import Workflow
from sglang_ext.driver.events import Event, RunFailed, RunFinished, TaskFinished, Token
from sglang_ext.driver.record import Record


class RunOutput(Protocol):
    def take(self, event: Event) -> None:
        """Hear an event of a run."""


class JsonOutput:
    """A record per line, as the runs end."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def take(self, event: Event) -> None:
        if isinstance(event, RunFinished | RunFailed):
            _write(self._out, event.record.to_json() + "\n")


class StreamedOutput:
    """The OutputVars of one run in the order of their declaration; the first open one's tokens as they come."""

    def __init__(self, workflow: Workflow, out: IO[str]) -> None:
        self._out = out
        variables = [v for v in workflow.variables.values() if v.kind is VariableKind.OUTPUT]
        self._several = len(variables) > 1
        self._waiting = [v.name for v in variables]
        self._written: str | None = None  # what has appeared of the first waiting one
        self._texts: dict[str, str] = {}
        self._complete: set[str] = set()

    def take(self, event: Event) -> None:
        if isinstance(event, Token) and event.text:
            self._texts[event.variable] = self._texts.get(event.variable, "") + event.text
        elif isinstance(event, TaskFinished):
            self._texts.setdefault(event.variable, "")
            self._complete.add(event.variable)
        elif isinstance(event, RunFinished | RunFailed):
            self._texts.update(event.record.outputs)
            self._complete.update(event.record.outputs)
        self._show()
        if isinstance(event, RunFinished | RunFailed) and self._written is not None:
            _write(self._out, "\n")  # a failed run's last output stays open

    def _show(self) -> None:
        while self._waiting and (text := self._texts.get(self._waiting[0])) is not None:
            name = self._waiting[0]
            if self._written is None:
                self._written = ""
                _write(self._out, f"{name}:\n" if self._several else "")
            _write(self._out, text[len(self._written) :])
            self._written = text
            if name not in self._complete:
                return
            _write(self._out, "" if text.endswith("\n") else "\n")
            self._waiting.pop(0)
            self._written = None


class ListedOutput:
    """The outputs of many runs, run by run in their order, each as soon as those before it have ended."""

    def __init__(self, workflow: Workflow, out: IO[str]) -> None:
        self._out = out
        self._several = sum(v.kind is VariableKind.OUTPUT for v in workflow.variables.values()) > 1
        self._ended: dict[int, Record] = {}
        self._next = 0

    def take(self, event: Event) -> None:
        if not isinstance(event, RunFinished | RunFailed):
            return
        self._ended[event.record.run.index] = event.record
        while (record := self._ended.pop(self._next, None)) is not None:
            _write(self._out, f"[{self._next}]\n{self._text(record)}")
            self._next += 1

    def _text(self, record: Record) -> str:
        lines = [f"{name}:\n{text}" if self._several else text for name, text in record.outputs.items()]
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _write(out: IO[str], text: str) -> None:
    out.write(text)
    out.flush()
