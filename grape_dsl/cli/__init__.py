"""The console command `grape`. Its parts are loaded when they are used."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from io import TextIOWrapper
from typing import NoReturn

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

_EXTRAS = {"tokenizers": "tokenizers", "jinja2": "tokenizers"}
_RUNTIME = ("sglang", "torch", "gguf", "httpx", "transformers", "safetensors", "numpy", "typer", "rich")


class ExitCode(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    ENGINE = 3


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `grape` with `arguments`, by default those of the process, and exit."""
    code = _run(arguments)
    if arguments is None and "torch" in sys.modules:
        _leave(code)
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    import click

    from grape_dsl.cli.root import root

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # prompts hold any character, whatever the terminal can show
    try:
        code = root.main(None if arguments is None else list(arguments), prog_name="grape", standalone_mode=False)
        return code if isinstance(code, int) else ExitCode.OK
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or ExitCode.OK
        raise
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except ImportError as error:
        needed = missing_extra(error)
        if needed is None:
            raise
        print(f"grape: this needs {error.name!r}, which cannot be imported: {error}", file=sys.stderr)
        print(f'It comes with: pip install "grape-dsl[{needed}]"', file=sys.stderr)
        return ExitCode.ENGINE


def _leave(code: int) -> NoReturn:
    """End this process without freeing its memory piece by piece, which takes Python seconds once torch is loaded."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever read it is gone, or it is closed
            stream.flush()
    os._exit(code)


def missing_extra(error: ImportError) -> str | None:
    """The extra of grape-dsl that brings the module which cannot be imported; None if none does."""
    package = (error.name or "").partition(".")[0]
    return "sglang" if package in _RUNTIME else _EXTRAS.get(package)
