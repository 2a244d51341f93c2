"""Token counters by the value of `--tokenizer`."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import click

from grape_dsl.lowering.token_counter import TokenCounter

ENTRY_POINTS = "grape.token_counters"
"""Packages add counters here: the entry point's name is what `--tokenizer` takes, its value a function without arguments."""


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
        names = "".join(f", or {name!r}" for name in sorted(added))
        raise click.BadParameter(f"{value!r} is no folder with a tokenizer; give one{names}", param_hint="--tokenizer")
    from grape_dsl.encoding import ChatEncoder

    return ChatEncoder.from_folder(folder)
