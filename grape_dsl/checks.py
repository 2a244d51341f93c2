"""Whole-program rules, over the model: the same for every door, with or without spans."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from grape_dsl.cycles import find_cycles
from grape_dsl.diagnostics import Diagnostic, Related, Severity, Span, naming_hint
from grape_dsl.option_rules import faults
from grape_dsl.prompt import RawPrompt, references, templates
from grape_dsl.template import Reference, Template
from grape_dsl.variables import Variable, VariableKind
from grape_dsl.workflow import Workflow

SINGLE_BRACES = re.compile(r"(?<!\{)\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}")
"""A name in single braces, which other template languages would insert."""


def check(workflow: Workflow, also_known: Collection[str] = frozenset()) -> list[Diagnostic]:
    """Everything that is wrong with a program as a whole; linear in its size.

    Args:
        also_known: names that are declared in a part that could not be read, so not called unknown.
    """
    return _Checker(workflow, also_known).run()


class _Checker:
    def __init__(self, workflow: Workflow, also_known: Collection[str]) -> None:
        self.workflow = workflow
        self.also_known = also_known
        self.found: list[Diagnostic] = []
        self.reads = {name: list(references(task.prompt)) for name, task in workflow.tasks.items()}
        self.fragments = {name: v for name, v in workflow.variables.items() if v.value is not None}
        self.writers: dict[str, list[str]] = {}
        for name, task in workflow.tasks.items():
            self.writers.setdefault(task.output, []).append(name)

    def run(self) -> list[Diagnostic]:
        self._options()
        self._variables()
        self._names()
        self._writers()
        self._cycles()
        self._reachable()
        self._prompts()
        if not self.workflow.tasks:
            hint = "add_task(...) adds a model call"
            self._error("no-tasks", f"workflow {self.workflow.name!r} has no tasks", self.workflow.span, hint)
        return self.found

    def _error(
        self, code: str, message: str, span: Span | None, hint: str | None = None, related: tuple[Related, ...] = ()
    ) -> None:
        self.found.append(Diagnostic(code, message, span, hint, related))

    def _warning(
        self, code: str, message: str, span: Span | None, hint: str | None = None, related: tuple[Related, ...] = ()
    ) -> None:
        self.found.append(Diagnostic(code, message, span, hint, related, Severity.WARNING))

    def _options(self) -> None:
        for _, rule in faults(self.workflow.defaults):
            self._error("bad-option", f"defaults of workflow {self.workflow.name!r}: {rule}", self.workflow.span)
        for task in self.workflow.tasks.values():
            for _, rule in faults(task.options):
                self._error("bad-option", f"task {task.name!r}: {rule}", task.span)

    def _variables(self) -> None:
        for variable in self.workflow.variables.values():
            is_input = variable.kind is VariableKind.INPUT
            if is_input and variable.value is not None:
                what = f"{variable.name!r} is an InputVar: its value comes from the caller, so it takes no `value`"
                self._error("input-written", what, variable.span, "make it an IntermediateVar, or use `default`")
            if not is_input and variable.default is not None:
                what = f"`default` of an {variable.kind.value} ({variable.name!r}) is not supported yet"
                self._error("not-supported", what, variable.span, "an InputVar may have one")

    def _names(self) -> None:
        for name, refs in self.reads.items():
            for reference in refs:
                self._known(reference, f"task {name!r}", self.workflow.tasks[name].span)
        for name, variable in self.fragments.items():
            for reference in _references(variable.value):
                self._known(reference, f"the value of {name!r}", variable.span)
        for task in self.workflow.tasks.values():
            if not self._is_known(task.output):
                where = task.output_span or task.span
                hint = f"add add_variable({task.output}, IntermediateVar)" if not self._close(task.output) else None
                self._unknown(task.output, f"task {task.name!r} writes", where, hint)

    def _is_known(self, name: str) -> bool:
        return name in self.workflow.variables or name in self.also_known

    def _close(self, name: str) -> bool:
        return naming_hint(name, self.workflow.variables, "variables").startswith("did you")

    def _known(self, reference: Reference, reader: str, reader_span: Span | None) -> None:
        if self._is_known(reference.name):
            return
        hint = None
        if reference.name in self.workflow.tasks:
            output = self.workflow.tasks[reference.name].output
            hint = f"{reference.name!r} is a task; what it writes is called {output!r}"
        self._unknown(reference.name, f"{reader} reads", reference.span or reader_span, hint)

    def _unknown(self, name: str, who: str, span: Span | None, hint: str | None) -> None:
        hint = hint or naming_hint(name, self.workflow.variables, "variables")
        self._error("unknown-name", f"{who} {name!r}, and there is no variable of that name", span, hint)

    def _writers(self) -> None:
        tasks = self.workflow.tasks
        for name, variable in self.workflow.variables.items():
            writers = self.writers.get(name, [])
            places = [(f"task {w!r} writes it here", tasks[w].output_span or tasks[w].span) for w in writers]
            declared = Related(f"{name!r} is declared here", variable.span)
            if variable.kind is VariableKind.INPUT:
                for writer, (_, span) in zip(writers, places, strict=True):
                    what = f"task {writer!r} writes {name!r}, an InputVar, whose value comes from the caller"
                    self._error("input-written", what, span, "write an IntermediateVar or OutputVar", (declared,))
            elif variable.value is not None and writers:
                what = f"{name!r} has a `value` and is also written by task {writers[0]!r}"
                related = tuple(Related(*place) for place in places)
                self._error("value-and-writer", what, variable.span, "keep one of the two", related)
            elif len(writers) > 1:
                names = ", ".join(map(repr, writers[:-1])) + f" and {writers[-1]!r}"
                related = tuple(Related(*place) for place in places)
                hint = "give each task a variable of its own"
                self._error("two-writers", f"{name!r} is written by tasks {names}", places[1][1], hint, related)
            elif not writers and variable.value is None:
                what = f"nothing writes {name!r}, an {variable.kind.value}"
                self._error("no-writer", what, variable.span, f"let a task have task_output = {name}")

    def _cycles(self) -> None:
        """Nodes are tasks and fragments; an arrow goes from what writes a value to what reads it."""
        readers: dict[str, list[str]] = {name: [] for name in (*self.reads, *self.fragments)}
        for reader, refs in self._all_reads():
            for reference in refs:
                for source in self._sources(reference.name):
                    readers[source].append(reader)
        for path in find_cycles(readers):
            closed = " -> ".join([*path, path[0]])
            related = tuple(Related(f"{name!r} is here", self._span(name)) for name in path[1:])
            if all(name in self.fragments for name in path):
                what = f"the value of {path[0]!r} contains itself: {closed}"
                self._error("recursive-value", what, self._span(path[0]), None, related)
            else:
                what = f"these tasks wait for each other: {closed}"
                hint = "an arrow goes from what writes a value to what reads it; take one reference out"
                self._error("cycle", what, self._span(path[0]), hint, related)

    def _all_reads(self) -> Iterator[tuple[str, list[Reference]]]:
        yield from self.reads.items()
        for name, variable in self.fragments.items():
            yield name, list(_references(variable.value))

    def _sources(self, variable: str) -> list[str]:
        """What gives a variable its value: a fragment itself, or the tasks that write it; nothing for an InputVar."""
        declared = self.workflow.variables.get(variable)
        if declared is not None and declared.kind is VariableKind.INPUT:
            return []
        return [variable] if variable in self.fragments else self.writers.get(variable, [])

    def _span(self, name: str) -> Span | None:
        found = self.workflow.tasks.get(name) or self.workflow.variables.get(name)
        return found.span if found else None

    def _reachable(self) -> None:
        read = {reference.name for _, refs in self._all_reads() for reference in refs}
        for name, variable in self.workflow.variables.items():
            if variable.kind is not VariableKind.OUTPUT and name not in read:
                what = f"nothing reads {name!r}, an {variable.kind.value}"
                self._warning("unused-variable", what, variable.span, self._unused_hint(variable))
        useful: set[str] = set()
        waiting = [n for n, v in self.workflow.variables.items() if v.kind is VariableKind.OUTPUT]
        reads = dict(self._all_reads())
        while waiting:
            for source in self._sources(waiting.pop()):
                if source not in useful:
                    useful.add(source)
                    waiting += [reference.name for reference in reads[source]]
        for name, task in self.workflow.tasks.items():
            output = self.workflow.variables.get(task.output)
            if name not in useful and output is not None and output.value is None:
                what = f"what task {name!r} writes ({task.output!r}) reaches no OutputVar"
                self._warning("unreachable-task", what, task.span, "take the task out, or let an output depend on it")

    def _unused_hint(self, variable: Variable) -> str:
        if variable.kind is VariableKind.INPUT:
            return f"use it as {{{{{variable.name}}}}}, or take it out"
        return f"use it as {{{{{variable.name}}}}}, or make it an OutputVar if the caller wants it"

    def _prompts(self) -> None:
        for task in self.workflow.tasks.values():
            if isinstance(task.prompt, RawPrompt) and not task.prompt.text.parts:
                self._error("empty-prompt", f"task {task.name!r}: a raw prompt needs some text", task.span)
            for template in templates(task.prompt):
                self._single_braces(template, task.span)
        for variable in self.fragments.values():
            assert variable.value is not None
            self._single_braces(variable.value, variable.span)

    def _single_braces(self, template: Template, span: Span | None) -> None:
        names: dict[str, None] = {}
        for part in template.parts:
            if isinstance(part, str) and "{" in part:
                names.update((m[1], None) for m in SINGLE_BRACES.finditer(part) if m[1] in self.workflow.variables)
        for name in names:
            what = f"{{{name}}} is plain text, though {name!r} is a variable"
            self._warning("single-braces", what, template.span or span, f"write {{{{{name}}}}} for its value")


def _references(template: Template | None) -> Iterator[Reference]:
    return iter(()) if template is None else template.references
