"""Token counters by the value of `--tokenizer`."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import click

from grape_dsl.lowering.token_counter import TokenCounter

ENTRY_POINTS = "grape.token_counters"
"""Packages add counters here: the name is what `--tokenizer` takes, the value a function that returns the counter."""


def token_counter(value: str) -> TokenCounter:
    """The counter called `value`, else the one of the tokenizer in folder `value`.

    Raises:
        click.BadParameter: there is neither.
        ModuleNotFoundError: a package that it needs is not installed.
    """
    added = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if value in added:
        counter: TokenCounter = added[value].load()()
        return counter
    folder = Path(value)
    if not folder.is_dir():
        names = "".join(f" or {name!r}" for name in sorted(added))
        message = f"there is no folder {value!r}; give the folder of a model{names}"
        raise click.BadParameter(message, param_hint="--tokenizer")
    from grape_dsl.encoding import ChatEncoder, EncodingError

    try:
        return ChatEncoder.from_folder(folder)
    except EncodingError as error:
        raise click.BadParameter(str(error), param_hint="--tokenizer") from None
