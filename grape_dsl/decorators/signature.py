"""Signatures of the functions that are traced, and how a rule's breach is reported."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from grape_dsl.decorators.symbol import Symbol
from grape_dsl.diagnostics import Diagnostic, DiagnosticError


def traceable_signature(function: Callable[..., Any], what: str) -> inspect.Signature:
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            refuse(
                "bad-parameter",
                f"parameter {parameter.name!r} of {what} function {function.__name__!r} takes no fixed name",
                "write each parameter by name, without *, ** and /",
            )
    annotations = {f"parameter {p.name!r}": p.annotation for p in signature.parameters.values()}
    if what == "task":
        annotations["the result"] = signature.return_annotation
    for where, annotation in annotations.items():
        if not _is_text(annotation):
            written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", repr(annotation))
            refuse(
                "not-supported",
                f"types other than str are not supported yet: {where} of {what} {function.__name__!r} is {written}",
            )
    return signature


def _is_text(annotation: object) -> bool:
    """Whether an annotation says text, a symbol, or nothing."""
    if isinstance(annotation, str):
        return all(part.strip().rpartition(".")[2] in ("str", "Symbol") for part in annotation.split("|"))
    return annotation in (inspect.Signature.empty, str, Symbol, str | Symbol)


def refuse(code: str, message: str, hint: str | None = None) -> NoReturn:
    raise DiagnosticError([Diagnostic(code, message, hint=hint)])
