"""Templates: prompt text with references to variables.

Only the data is here; `grape_dsl.syntax` reads `{{...}}` text into it. Values are inserted once
and never parsed again, so a template is a flat row of parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from grape_dsl.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Reference:
    """The value of variable `name`; with `strip`, without white space at both ends."""

    name: str
    strip: bool = False
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Template:
    """Text and references in the order in which they are joined.

    Neighbouring texts are merged and empty ones left out, so equal programs have equal templates;
    make one with `Template.of`.
    """

    parts: tuple[str | Reference, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @classmethod
    def of(cls, *parts: str | Reference, span: Span | None = None) -> Template:
        merged: list[str | Reference] = []
        for part in parts:
            if isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            elif part != "":
                merged.append(part)
        return cls(tuple(merged), span)

    @property
    def references(self) -> Iterator[Reference]:
        return (part for part in self.parts if isinstance(part, Reference))
