"""ChatTemplate: what a model's chat template writes around the contents of turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, NoReturn

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from grape_dsl.encoding.errors import EncodingError

_LEFT, _RIGHT = "\n \n", "\n\t\n"


class Trim(Enum):
    """What a template takes off one end of a turn's content."""

    NONE = "none"
    NEWLINES = "newlines"
    SPACE = "space"


# What is left of the white space that is put around a content, by what the template trims.
_LEFT_REST = {Trim.NONE: _LEFT, Trim.NEWLINES: " \n", Trim.SPACE: ""}
_RIGHT_REST = {Trim.NONE: _RIGHT, Trim.NEWLINES: "\n\t", Trim.SPACE: ""}


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a turn's content: which turn, counted from 0, and what is trimmed off its ends."""

    turn: int
    left: Trim
    right: Trim


Rendering = tuple[str | Slot, ...]
"""The template's text and the slots in it, in prompt order."""


class ChatTemplate:
    """A compiled chat template, in the dialect that Hugging Face's tokenizers use.

    Args:
        source: the Jinja text.
        variables: further variables, such as `bos_token`.
        where: where the template comes from, for messages.

    Raises:
        EncodingError: the template is not valid Jinja.
    """

    def __init__(self, source: str, variables: Mapping[str, str], where: str):
        self._where = where
        self._variables = dict(variables)
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise EncodingError(f"the chat template of {where} is not valid: {error}") from error
        # A template that asks for the date is rendered each time, so that a long-lived process gets today's.
        self.render = self._render if "strftime_now" in source else lru_cache(maxsize=256)(self._render)

    def _render(self, roles: tuple[str, ...], *, continued: bool) -> Rendering:
        """Render turns of `roles`; with `continued`, the last one is left open for the model.

        Raises:
            EncodingError: the template refuses the roles, or does not write each content once, as it is.
        """
        plain = self._text(roles, "", "", continued)
        padded = self._text(roles, _LEFT, _RIGHT, continued)
        texts, order = self._cut(plain, roles, continued)
        padded_texts, padded_order = self._cut(padded, roles, continued)
        if order != padded_order:
            raise self._unclear(roles)
        parts: list[str | Slot] = []
        left: Trim | None = None
        last = len(order)
        for index, (text, padded_text) in enumerate(zip(texts, padded_texts, strict=True)):
            # The trims of the slot before and of the slot after this text, where there are such.
            found = [
                (right, next_left)
                for right in (Trim if index > 0 else (None,))
                for next_left in (Trim if index < last else (None,))
                if padded_text == _rest(_RIGHT_REST, right) + text + _rest(_LEFT_REST, next_left)
            ]
            if len(found) != 1:
                raise self._unclear(roles)
            right, next_left = found[0]
            if left and right:
                parts.append(Slot(order[index - 1], left, right))
            if text and not (continued and index == last):
                parts.append(text)
            left = next_left
        return tuple(parts)

    def _text(self, roles: tuple[str, ...], left: str, right: str, continued: bool) -> str:
        messages = [{"role": role, "content": f"{left}{_marker(i)}{right}"} for i, role in enumerate(roles)]
        try:
            return self._template.render(
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=not continued,
                **self._variables,
            )
        except Exception as error:  # a template is foreign code: TypeError and others too
            raise EncodingError(
                f"the chat template of {self._where} refuses turns of the roles {', '.join(roles)}: {error}. "
                "Change the prompt's turns, or use raw(...) to go without the template."
            ) from error

    def _cut(self, text: str, roles: Sequence[str], continued: bool) -> tuple[list[str], list[int]]:
        """The texts between the markers, and the turns in the order of their markers."""
        places = {i: text.find(_marker(i)) for i in range(len(roles))}
        for i, role in enumerate(roles):
            if text.count(_marker(i)) != 1:
                fault = "leaves out" if places[i] < 0 else "repeats"
                raise EncodingError(
                    f"the chat template of {self._where} {fault} the content of turn {i + 1} ({role}). "
                    "Change the prompt's turns, or use raw(...) to go without the template."
                )
        order = sorted(places, key=places.__getitem__)
        if continued and order[-1] != len(roles) - 1:
            raise EncodingError(
                f"the chat template of {self._where} does not put the last turn last, so the model cannot continue it. "
                "End the prompt with a user turn."
            )
        texts, start = [], 0
        for i in order:
            texts.append(text[start : places[i]])
            start = places[i] + len(_marker(i))
        texts.append(text[start:])
        return texts, order

    def _unclear(self, roles: Sequence[str]) -> EncodingError:
        return EncodingError(
            f"the chat template of {self._where} changes the contents of turns ({', '.join(roles)}) in a way "
            "other than trimming white space. Use raw(...) to go without the template."
        )


def _rest(rests: Mapping[Trim, str], trim: Trim | None) -> str:
    return "" if trim is None else rests[trim]


def _marker(turn: int) -> str:
    return f"GrapeContent{turn:06d}Marker"


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter escapes for HTML; chat templates expect plain JSON."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class _Generation(Extension):
    """The tag `generation`, which marks the model's own text for training; here its body is plain output."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)
