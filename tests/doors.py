"""A workflow written out for each door: as `.flow` text, as calls of `Workflow.add_*`, as decorated Python."""

from __future__ import annotations

from typing import Any

from grape_dsl.decorators import docstring_text
from grape_dsl.fragments import expand
from grape_dsl.prompt import Prompt, RawPrompt, Role, Turn
from grape_dsl.prompt_reading import assistant, raw, system, user
from grape_dsl.task import Options
from grape_dsl.template import Reference, Template
from grape_dsl.variables import VariableKind
from grape_dsl.workflow import Workflow

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "{": "\\u{7B}"}
_TURNS = {Role.SYSTEM: system, Role.USER: user, Role.ASSISTANT: assistant}


def to_flow(workflow: Workflow) -> str:
    """The program as `.flow` text."""
    lines = [f"workflow {workflow.name}({', '.join(_flow_options(workflow.defaults))})"]
    for variable in workflow.variables.values():
        extra = "" if variable.default is None else f", default = {_quoted(variable.default)}"
        if variable.value is not None:
            extra += f", value = {_flow_text(variable.value)}"
        lines.append(f"add_variable({variable.name}, {variable.kind.value}{extra})")
    for task in workflow.tasks.values():
        arguments = [f"prompt = {_flow_prompt(task.prompt)}", f"task_output = {task.output}"]
        lines.append(f"add_task({task.name}, {', '.join([*arguments, *_flow_options(task.options)])})")
    return "\n".join(lines) + "\n"


def rebuilt(workflow: Workflow) -> Workflow:
    """The same program, made again by calls with Python strings."""
    made = Workflow(workflow.name, workflow.about, workflow.defaults)
    for variable in workflow.variables.values():
        value = None if variable.value is None else python_text(variable.value)
        made.add_variable(variable.name, variable.kind, default=variable.default, value=value)
    for task in workflow.tasks.values():
        made.add_task(task.name, _python_prompt(task.prompt), task_output=task.output, **given(task.options))
    return made


def to_python(workflow: Workflow) -> str:
    """The program as a module with decorators, its workflow called `built`. Fragments are written out."""
    lines = [
        "from grape_dsl.decorators import task, workflow",
        "from grape_dsl.prompt_reading import assistant, raw, system, user",
    ]
    for task in workflow.tasks.values():
        reads = _reads(workflow, task.prompt)
        options = "".join(f", {name}={value!r}" for name, value in given(task.options).items())
        lines += ["", f"@task(task_output={task.output!r}{options})", f"def {task.name}({', '.join(reads)}):"]
        lines.append(f"    {_python_body(workflow, task.prompt)}")
    inputs = [
        v.name if v.default is None else f"{v.name}={v.default!r}"
        for v in sorted(workflow.variables.values(), key=lambda v: v.default is not None)
        if v.kind is VariableKind.INPUT
    ]
    defaults = "".join(f", {name}={value!r}" for name, value in given(workflow.defaults).items())
    lines += ["", f"@workflow(name={workflow.name!r}{defaults})", f"def built({', '.join(inputs)}):"]
    for task in workflow.tasks.values():
        lines.append(f"    {task.output} = {task.name}({', '.join(_reads(workflow, task.prompt))})")
    outputs = [v.name for v in workflow.variables.values() if v.kind is VariableKind.OUTPUT]
    lines.append("    return {" + ", ".join(f"{name!r}: {name}" for name in outputs) + "}")
    return "\n".join(lines) + "\n"


def from_python(source: str) -> Workflow:
    """The workflow `built` of a module that `to_python` wrote."""
    module: dict[str, Any] = {}
    exec(compile(source, "<built>", "exec"), module)
    built = module["built"]
    assert isinstance(built, Workflow)
    return built


def python_text(template: Template) -> str:
    """A Python string that reads as `template`."""
    return "".join(_tag(p) if isinstance(p, Reference) else p.replace("{", '{{"{"}}') for p in template.parts)


def given(options: Options) -> dict[str, Any]:
    """The options that are given, by name."""
    values = {name: getattr(options, name) for name in Options.__slots__}
    return {name: value for name, value in values.items() if value is not None}


def _tag(reference: Reference) -> str:
    return f"{{{{strip({reference.name})}}}}" if reference.strip else f"{{{{{reference.name}}}}}"


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\u{{{ord(character):X}}}"


def _flow_text(template: Template) -> str:
    parts = (_tag(p) if isinstance(p, Reference) else _quoted(p)[1:-1] for p in template.parts)
    return '"' + "".join(parts) + '"'


def _flow_prompt(prompt: Prompt) -> str:
    if isinstance(prompt, RawPrompt):
        return f"raw({_flow_text(prompt.text)})"
    shown = [f"{turn.role.value}({_flow_text(turn.content)})" for turn in prompt.turns if turn.role is not Role.SYSTEM]
    systems = [turn for turn in prompt.turns if turn.role is Role.SYSTEM]
    text = f"[{', '.join(shown)}]"
    return f"{text}, system = {_flow_text(systems[0].content)}" if systems else text


def _flow_options(options: Options) -> list[str]:
    shown = []
    for name, value in given(options).items():
        if name == "stop":
            value = "[" + ", ".join(_quoted(text) for text in value) + "]"
        shown.append(f"{name} = {value}")
    return shown


def _python_prompt(prompt: Prompt) -> Any:
    if isinstance(prompt, RawPrompt):
        return raw(python_text(prompt.text))
    return [_TURNS[turn.role](python_text(turn.content)) for turn in prompt.turns]


def _expanded(workflow: Workflow, prompt: Prompt) -> Prompt:
    if isinstance(prompt, RawPrompt):
        return RawPrompt(expand(workflow, prompt.text))
    return type(prompt)(tuple(Turn(turn.role, expand(workflow, turn.content)) for turn in prompt.turns))


def _reads(workflow: Workflow, prompt: Prompt) -> list[str]:
    """Names that a prompt reads, fragments spliced."""
    prompt = _expanded(workflow, prompt)
    contents = [prompt.text] if isinstance(prompt, RawPrompt) else [turn.content for turn in prompt.turns]
    return list(dict.fromkeys(r.name for content in contents for r in content.references))


def _python_body(workflow: Workflow, prompt: Prompt) -> str:
    """A docstring where it says the same, else what the function returns."""
    prompt = _expanded(workflow, prompt)
    if isinstance(prompt, RawPrompt):
        return f"return raw({python_text(prompt.text)!r})"
    if len(prompt.turns) == 1 and prompt.turns[0].role is Role.USER:
        text = python_text(prompt.turns[0].content)
        if docstring_text(text) == text:
            return repr(text)
    turns = ", ".join(f"{turn.role.value}({python_text(turn.content)!r})" for turn in prompt.turns)
    return f"return [{turns}]"
