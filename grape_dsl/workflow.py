"""The one model of a program. Every door builds it, and the compiler knows nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grape_dsl.diagnostics import Diagnostic, DiagnosticError, Related, Span, naming_hint
from grape_dsl.names import check_name
from grape_dsl.prompt import Prompt
from grape_dsl.prompt_reading import PromptLike, TextLike, read_prompt, read_text
from grape_dsl.task import Options, Slo, Task, Timeout
from grape_dsl.variables import Variable, VariableKind


@dataclass(slots=True)
class Workflow:
    """A workflow: variables, and tasks whose prompts use them.

    Statement order means nothing: two workflows with the same statements are equal. Whole-program
    rules (one writer, no cycle, ...) are checked by `grape_dsl.checks.check`, which the compiler calls.

    Args:
        about: a sentence that describes it.
        defaults: options of every task that does not give its own.
    """

    name: str
    about: str | None = None
    defaults: Options = field(default_factory=Options)
    variables: dict[str, Variable] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name, "workflow", self.span)

    def add_variable(
        self,
        name: str,
        kind: VariableKind | str,
        *,
        default: str | None = None,
        value: TextLike | None = None,
    ) -> Variable:
        """Declare a variable.

        Args:
            kind: `InputVar`, `IntermediateVar` or `OutputVar`, or its name.
            default: text of an InputVar that the caller may leave out.
            value: template text of a fragment; such a variable has no writing task.

        Raises:
            DiagnosticError: the name is taken or no name, there is no such kind, or the template cannot be read.
        """
        kinds = [valid.value for valid in VariableKind]
        if kind not in kinds:
            message = f"variable {name!r}: {kind!r} is no kind of variable"
            raise DiagnosticError([Diagnostic("bad-argument", message, hint=naming_hint(str(kind), kinds, "kinds"))])
        return self.declare(Variable(name, VariableKind(kind), default, None if value is None else read_text(value)))

    def add_task(
        self,
        name: str,
        prompt: PromptLike,
        *,
        task_output: str | Variable,
        system: TextLike | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        logprobs: bool | int | None = None,
        timeout: Timeout | None = None,
        slo: Slo | None = None,
    ) -> Task:
        """Add a model call that writes variable `task_output`.

        Args:
            prompt: template text (one user turn), a list of turns, or `raw(...)`.
            system: template text of a system turn in front.

        Raises:
            DiagnosticError: the name is taken or no name, or a template cannot be read.
        """
        options = Options(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            stop=(stop,) if isinstance(stop, str) else None if stop is None else tuple(stop),
            seed=seed,
            logprobs=logprobs,
            timeout=timeout,
            slo=slo,
        )
        output = task_output.name if isinstance(task_output, Variable) else task_output
        return self.declare_task(Task(name, read_prompt(prompt, system), output, options))

    def declare(self, variable: Variable) -> Variable:
        """Take a finished `Variable`; raises DiagnosticError if its name is taken or no name."""
        check_name(variable.name, "variable", variable.span)
        self._refuse_taken(variable.name, "variable", variable.span)
        self.variables[variable.name] = variable
        return variable

    def declare_task(self, task: Task) -> Task:
        """Take a finished `Task`; raises DiagnosticError if its name is taken or no name."""
        check_name(task.name, "task", task.span)
        self._refuse_taken(task.name, "task", task.span)
        self.tasks[task.name] = task
        return task

    def options(self, task: Task) -> Options:
        """The options of `task` with the workflow's defaults filled in."""
        return task.options.over(self.defaults)

    def prompt(self, task: str) -> Prompt:
        return self.tasks[task].prompt

    def _refuse_taken(self, name: str, what: str, span: Span | None) -> None:
        earlier = self.variables.get(name) or self.tasks.get(name)
        if earlier is None:
            return
        kind = "variable" if name in self.variables else "task"
        fault = "is declared twice" if kind == what else f"has the name of a {kind}"
        raise DiagnosticError(
            [
                Diagnostic(
                    "duplicate-name",
                    f"{what} {name!r} {fault}; names of variables and tasks are unique in a workflow",
                    span,
                    hint=f"give the {what} another name",
                    related=(Related(f"the {kind} {name!r} is here", earlier.span),),
                )
            ]
        )
