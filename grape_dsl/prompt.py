"""Prompts: what one model call is given, as turns of a chat or as raw text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from grape_dsl.template import Reference, Template


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    content: Template


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """Turns for the model's chat template. The model continues a final assistant turn."""

    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """Text that skips the chat template; the model's BOS, if it has one, stands in front."""

    text: Template


Prompt = ChatPrompt | RawPrompt


def templates(prompt: Prompt) -> Iterator[Template]:
    """The templates of a prompt, in prompt order."""
    if isinstance(prompt, RawPrompt):
        yield prompt.text
    else:
        for turn in prompt.turns:
            yield turn.content


def references(prompt: Prompt) -> Iterator[Reference]:
    """The references of a prompt, in prompt order."""
    for template in templates(prompt):
        yield from template.references
