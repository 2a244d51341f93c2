"""From a syntax tree to a `Workflow`. What is not supported yet is refused, nothing is ignored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from grape_dsl.diagnostics import Diagnostic, DiagnosticError, Related, naming_hint
from grape_dsl.prompt import Prompt
from grape_dsl.syntax import tree
from grape_dsl.syntax.arguments import ArgumentReader
from grape_dsl.syntax.literals import plain_text
from grape_dsl.syntax.not_supported import not_supported
from grape_dsl.syntax.option_values import CALLS, LATER_OPTIONS, VALUES, read_options
from grape_dsl.syntax.parser import Parsed
from grape_dsl.syntax.prompts import read_prompt_value
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.templates import read_value
from grape_dsl.task import Options, Task
from grape_dsl.variables import Variable, VariableKind
from grape_dsl.workflow import Workflow

T = TypeVar("T")

_LATER_WORK = ("python", "http", "ask", "flow", "tools")
_LATER_HEADER = ("system",)


@dataclass(slots=True)
class Built:
    """The workflow as far as it could be built, what was found, and the names of statements left out."""

    workflow: Workflow
    diagnostics: list[Diagnostic]
    dropped: set[str] = field(default_factory=set)


def build(source: SourceText, parsed: Parsed) -> Built:
    """The workflow of a program."""
    builder = _Builder(source, header_is_lost="workflow" in parsed.lost)
    program = parsed.program
    headers = [s for s in program.statements if isinstance(s, tree.Header)]
    builder.header(headers)
    for statement in program.statements:
        if not isinstance(statement, tree.Header):
            builder.statement(statement)
    return builder.built


class _Builder:
    def __init__(self, source: SourceText, header_is_lost: bool) -> None:
        self.source = source
        self.header_is_lost = header_is_lost
        self.built = Built(Workflow("program"), [])
        self.report: Callable[[Diagnostic], None] = self.built.diagnostics.append

    def header(self, headers: list[tree.Header]) -> None:
        source = self.source
        if not headers and self.header_is_lost:
            return  # it has a syntax error
        if not headers:
            where = source.span(0, min(1, len(source.text)))
            what = "the program has no header"
            self.report(Diagnostic("missing-header", what, where, hint="begin it with `workflow NAME`"))
            return
        header = headers[0]
        first = source.span(header.start, header.name.end)
        for other in headers[1:]:
            where = source.span(other.start, other.name.end)
            place = Related("the first is here", first)
            self.report(Diagnostic("second-header", "a file has one workflow", where, "use another file", (place,)))
        defaults, about = Options(), None
        if header.arguments is not None:
            items = header.arguments.items
            given = ArgumentReader(
                source,
                self.report,
                "the header",
                items,
                header,
                keys=("about", *VALUES),
                calls=CALLS,
                later=LATER_OPTIONS + _LATER_HEADER,
            )
            defaults = read_options(given)
            about = self._about(given)
        workflow = self._attempt(lambda: Workflow(header.name.text, about, defaults, span=first), header.name)
        if workflow is not None:
            self.built.workflow = workflow

    def _about(self, given: ArgumentReader) -> str | None:
        node = given.keyed.get("about")
        if node is None:
            return None
        if isinstance(node, tree.Text):
            return plain_text(self.source, node, self.report)
        given.fault("bad-option", "`about` must be a text", node)
        return None

    def statement(self, statement: tree.Import | tree.Statement) -> None:
        if isinstance(statement, tree.Declaration) and statement.word == "add_variable":
            self._variable(statement)
        elif isinstance(statement, tree.Declaration) and statement.word == "add_task":
            self._task(statement)
        else:
            self._refuse(statement)

    def _refuse(self, statement: tree.Import | tree.Statement) -> None:
        """Refuse a statement at its first word; names declared in it are not unknown afterwards."""
        self.built.dropped.update(_names_in(statement))
        word = _first_word(statement)
        at = tree.Name(statement.start, statement.start + len(word), word)
        self.report(not_supported(self.source, at, f"`{word}`"))

    def _variable(self, statement: tree.Declaration) -> None:
        given = ArgumentReader(
            self.source,
            self.report,
            "add_variable",
            statement.arguments.items,
            statement,
            keys=("default", "value"),
            later=("type", "start", "next"),
            places=2,
        )
        name = given.name_at(0, "the variable's name")
        kind = self._kind(given)
        before = len(self.built.diagnostics)
        default = given.keyed.get("default")
        value = given.keyed.get("value")
        has_type = any(isinstance(a, tree.Keyed) and a.key.text == "type" for a in statement.arguments.items)
        default_text = None if default is None or has_type else self._default(given, kind, default)
        template = None if value is None else read_value(self.source, value, self.report)
        failed = len(self.built.diagnostics) > before
        if name is None or kind is None:
            if name is not None:
                self.built.dropped.add(name.text)
            return
        span = self.source.span(name.start, name.end)
        variable = Variable(name.text, kind, default_text, template, span)
        if failed:
            self.built.dropped.add(name.text)
        self._attempt(lambda: self.built.workflow.declare(variable), name)

    def _kind(self, given: ArgumentReader) -> VariableKind | None:
        kinds = [kind.value for kind in VariableKind]
        node = given.name_at(1, "a kind: " + ", ".join(kinds))
        if node is None:
            return None
        if node.text == "CarriedVar":
            self.report(not_supported(self.source, node, "the kind CarriedVar"))
            return None
        if node.text not in kinds:
            hint = naming_hint(node.text, kinds, "kinds")
            given.fault("unknown-kind", f"there is no kind of variable {node.text!r}", node, hint)
            return None
        return VariableKind(node.text)

    def _default(self, given: ArgumentReader, kind: VariableKind | None, node: tree.Expression) -> str | None:
        if kind is not None and kind is not VariableKind.INPUT:
            self.report(not_supported(self.source, node, f"`default` of an {kind.value}"))
            return None
        if isinstance(node, tree.Text):
            return plain_text(self.source, node, self.report)
        given.fault("bad-option", "`default` must be a text", node, 'write it in quotes: "..."')
        return None

    def _task(self, statement: tree.Declaration) -> None:
        given = ArgumentReader(
            self.source,
            self.report,
            "add_task",
            statement.arguments.items,
            statement,
            keys=("prompt", "system", "task_output", *VALUES),
            calls=CALLS,
            later=LATER_OPTIONS + _LATER_WORK,
            places=1,
        )
        name = given.name_at(0, "the task's name")
        options = read_options(given)
        prompt = self._prompt(given, statement)
        output = self._output(given, statement)
        if name is None or prompt is None or output is None:
            self.built.dropped.update(_names_in(statement))
            return
        span, output_span = (self.source.span(node.start, node.end) for node in (name, output))
        task = Task(name.text, prompt, output.text, options, span, output_span)
        self._attempt(lambda: self.built.workflow.declare_task(task), name)

    def _prompt(self, given: ArgumentReader, statement: tree.Declaration) -> Prompt | None:
        node = given.keyed.get("prompt")
        if node is not None:
            return read_prompt_value(self.source, node, given.keyed.get("system"), self.report)
        others = [a for a in statement.arguments.items if isinstance(a, tree.Call) and _called(a) in _LATER_WORK]
        if not others:
            given.fault("missing-option", "add_task needs a prompt", statement, "prompt = ...")
        return None

    def _output(self, given: ArgumentReader, statement: tree.Declaration) -> tree.Name | None:
        node = given.keyed.get("task_output")
        if node is None:
            given.fault("missing-option", "add_task needs the variable that it writes", statement, "task_output = ...")
            return None
        if not isinstance(node, tree.Name):
            given.fault("bad-option", "`task_output` must be the name of a variable", node)
            return None
        return node

    def _attempt(self, make: Callable[[], T], at: tree.Node) -> T | None:
        """What `make` returns; its refusal, where it has no place, is reported at `at`."""
        try:
            return make()
        except DiagnosticError as error:
            where = self.source.span(at.start, at.end)
            for diagnostic in error.diagnostics:
                self.report(diagnostic if diagnostic.span else replace(diagnostic, span=where))
            return None


def _called(call: tree.Call) -> str | None:
    return call.function.text if isinstance(call.function, tree.Name) else None


def _first_word(statement: tree.Import | tree.Statement) -> str:
    if isinstance(statement, tree.Declaration | tree.RepeatOver):
        return statement.word
    if isinstance(statement, tree.Import):
        return "import"
    return "when" if isinstance(statement, tree.When) else "loop"


def _names_in(statement: tree.Import | tree.Statement) -> set[str]:
    """Names that a statement declares or writes, those of the statements inside it too."""
    names: set[str] = set()
    waiting: list[tree.Import | tree.Statement] = [statement]
    while waiting:
        current = waiting.pop()
        if isinstance(current, tree.Import):
            names.update(name.text for name in current.names)
        elif isinstance(current, tree.When):
            for body in [b.body for b in current.branches] + ([current.otherwise] if current.otherwise else []):
                waiting += body.statements
        elif isinstance(current, tree.RepeatOver):
            names.add(current.item.text)
            waiting += current.body.statements
        else:
            if isinstance(current, tree.Loop):
                waiting += current.body.statements
            for argument in current.arguments.items[:1]:
                if isinstance(argument, tree.Name):
                    names.add(argument.text)
            for argument in current.arguments.items:
                if isinstance(argument, tree.Keyed) and isinstance(argument.value, tree.Name):
                    names.add(argument.value.text)
    return names
