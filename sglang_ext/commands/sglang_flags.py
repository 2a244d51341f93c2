"""The arguments behind `--`, which are SGLang's own flags."""

from __future__ import annotations

from sglang_ext.driver.errors import InputError


def check_flags(flags: tuple[str, ...]) -> None:
    """Raises InputError if the first is no flag, but an argument that the command does not take."""
    if flags and not flags[0].startswith("-"):
        raise InputError(f"unexpected argument {flags[0]!r}; SGLang's own flags stand behind --")
