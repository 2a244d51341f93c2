"""Hypothesis strategies for random workflows."""

from __future__ import annotations

from hypothesis import strategies as st

from grape_dsl.prompt import ChatPrompt, Prompt, RawPrompt, Role, Turn, references
from grape_dsl.task import Options, Task
from grape_dsl.template import Reference, Template
from grape_dsl.variables import Variable, VariableKind
from grape_dsl.workflow import Workflow

MAX_DEPTH = 6

TEXTS = st.one_of(
    st.sampled_from(
        [
            " ",
            "\n",
            "\n\n  ",
            "{",
            "}",
            "{{",
            "}}",
            "{{x}}",
            '{"a": {"b": 1}}',
            '"""',
            "\\n",
            "\\",
            "# no comment",
            "<|im_end|>",
            "é 漢字 😀",
            "Answer:",
        ]
    ),
    st.text(
        st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"), include_characters="\n\t"),
        min_size=1,
        max_size=20,
    ),
)
"""Text for prompts, with everything that could be read as something else."""

OPTIONS = st.builds(
    Options,
    max_tokens=st.none() | st.integers(1, 512),
    temperature=st.none() | st.sampled_from([0, 0.5, 1.0]),
    top_p=st.none() | st.sampled_from([0.5, 0.9, 1.0]),
    stop=st.none() | st.lists(TEXTS, min_size=1, max_size=2, unique=True).map(tuple),
    seed=st.none() | st.integers(0, 2**31 - 1),
)


@st.composite
def templates(draw: st.DrawFn, names: list[str]) -> Template:
    """A template over variables `names` that is not empty."""
    references = st.builds(Reference, st.sampled_from(names), st.booleans()) if names else st.nothing()
    return Template.of(*draw(st.lists(TEXTS | references, min_size=1, max_size=5)))


@st.composite
def prompts(draw: st.DrawFn, names: list[str]) -> Prompt:
    """A raw prompt, or turns with or without a system text and an open assistant turn."""
    if draw(st.booleans()):
        return RawPrompt(draw(templates(names)))
    roles = draw(st.lists(st.sampled_from([Role.USER, Role.ASSISTANT]), max_size=2))
    roles = [Role.USER, *roles]
    if draw(st.booleans()):
        roles.insert(0, Role.SYSTEM)
    return ChatPrompt(tuple(Turn(role, draw(templates(names))) for role in roles))


@st.composite
def workflows(draw: st.DrawFn, max_tasks: int = 8, fragments: bool = True) -> Workflow:
    """A program without errors: fan-in, fan-out, holes anywhere, at most `MAX_DEPTH` tasks in a row.

    Args:
        fragments: let some variables have a `value` that others splice in.
    """
    made = Workflow(draw(st.sampled_from(["flow", "w_1", "Search"])), defaults=draw(OPTIONS))
    inputs = {f"in{i}": draw(st.none() | st.text(max_size=5)) for i in range(draw(st.integers(0, 3)))}
    depth: dict[str, int] = dict.fromkeys(inputs, 0)
    pieces: dict[str, Template] = {}
    for number in range(draw(st.integers(1, max_tasks))):
        names = [name for name, d in depth.items() if d < MAX_DEPTH]
        if fragments and draw(st.integers(0, 3)) == 0:
            value = draw(templates(names))
            note = f"note{number}"
            if not any(reference.strip and reference.name in pieces for reference in value.references):
                pieces[note] = value
                depth[note] = max((depth[r.name] for r in value.references), default=0)
                names.append(note)
        prompt = draw(prompts(names).filter(lambda p: not any(r.strip and r.name in pieces for r in references(p))))
        output = f"out{number}"
        depth[output] = 1 + max((depth[r.name] for r in references(prompt)), default=0)
        made.declare_task(Task(f"task{number}", prompt, output, draw(OPTIONS)))
    _declare_variables(draw, made, inputs, pieces)
    return made


def _declare_variables(
    draw: st.DrawFn, made: Workflow, inputs: dict[str, str | None], pieces: dict[str, Template]
) -> None:
    """Declare what is used; outputs that nothing reads, and some others, are OutputVars."""
    used = {r.name for task in made.tasks.values() for r in references(task.prompt)}
    for note, value in reversed(pieces.items()):
        if note in used:
            made.declare(Variable(note, VariableKind.INTERMEDIATE, value=value))
            used.update(reference.name for reference in value.references)
    for name, default in inputs.items():
        if name in used:
            made.declare(Variable(name, VariableKind.INPUT, default))
    for task in made.tasks.values():
        is_output = task.output not in used or draw(st.integers(0, 3)) == 0
        made.declare(Variable(task.output, VariableKind.OUTPUT if is_output else VariableKind.INTERMEDIATE))
