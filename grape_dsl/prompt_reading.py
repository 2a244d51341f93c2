"""What Python code gives as text or prompt, read into templates and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grape_dsl.diagnostics import Diagnostic, DiagnosticError
from grape_dsl.prompt import ChatPrompt, Prompt, RawPrompt, Role, Turn
from grape_dsl.template import Template

TextLike = str | Template
PromptLike = TextLike | Sequence[Turn] | RawPrompt


def read_text(text: TextLike) -> Template:
    """The template in a Python string: `{{name}}`, `{{strip(name)}}`, plain strings in tags.

    Raises:
        DiagnosticError: a tag cannot be read, or has something that is not supported.
    """
    if isinstance(text, Template):
        return text
    if not isinstance(text, str):
        raise _refused("bad-type", f"template text is a str or a Template, found {type(text).__name__}")
    if "{{" not in text:
        return Template.of(text)
    # Imported late: `Workflow` imports this module, and the syntax package imports `Workflow`.
    from grape_dsl.syntax.source import SourceText
    from grape_dsl.syntax.templates import read_string

    found: list[Diagnostic] = []
    template = read_string(SourceText(text), found.append)
    if found:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise DiagnosticError(replace(d, message=f"{d.message}, in the text {shown!r}", span=None) for d in found)
    return template


def read_prompt(prompt: PromptLike, system: TextLike | None = None) -> Prompt:
    """A prompt from template text (one user turn), a list of turns, or `raw(...)`.

    Args:
        system: text of a system turn in front.

    Raises:
        DiagnosticError: no turns, a system turn that is not the first, `system` with `raw`, or a text
            that cannot be read.
    """
    if isinstance(prompt, RawPrompt):
        if system is not None:
            raise _refused(
                "raw-system", "a raw prompt has no turns, so it takes no system text", "write it into raw(...)"
            )
        return prompt
    turns = [user(prompt)] if isinstance(prompt, str | Template) else list(prompt)
    for turn in turns:
        if not isinstance(turn, Turn):
            raise _refused(
                "bad-type", f"a list of turns holds user(...) and assistant(...), found {type(turn).__name__}"
            )
    if not turns:
        raise _refused("empty-prompt", "a prompt needs one turn at least", "user(...) makes a turn")
    if system is not None:
        turns.insert(0, Turn(Role.SYSTEM, read_text(system)))
    if any(turn.role is Role.SYSTEM for turn in turns[1:]):
        raise _refused("system-place", "a system turn stands first, and there is one at most")
    if turns[-1].role is Role.SYSTEM:
        raise _refused("empty-prompt", "a prompt needs a turn behind its system text", "user(...) makes a turn")
    return ChatPrompt(tuple(turns))


def user(text: TextLike) -> Turn:
    """A turn of the user."""
    return Turn(Role.USER, read_text(text))


def assistant(text: TextLike) -> Turn:
    """A turn of the assistant; as the last of a prompt the model continues it."""
    return Turn(Role.ASSISTANT, read_text(text))


def system(text: TextLike) -> Turn:
    """A system turn, which stands first."""
    return Turn(Role.SYSTEM, read_text(text))


def raw(text: TextLike) -> RawPrompt:
    """Text that skips the chat template."""
    return RawPrompt(read_text(text))


def _refused(code: str, message: str, hint: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, hint=hint)])
