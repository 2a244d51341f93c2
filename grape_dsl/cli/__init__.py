"""The console command `grape`. Its parts are loaded when they are used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import IntEnum
from io import TextIOWrapper

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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `grape` with `arguments`, by default those of the process, and exit."""
    import click

    from grape_dsl.cli.root import root

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # prompts hold any character, whatever the terminal can show
    try:
        code = root.main(None if arguments is None else list(arguments), prog_name="grape", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else ExitCode.OK)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(INTERRUPTED)
    except ImportError as error:
        needed = missing_extra(error)
        if needed is None:
            raise
        print(f"grape: this needs {error.name!r}, which cannot be imported: {error}", file=sys.stderr)
        print(f'It comes with: pip install "grape-dsl[{needed}]"', file=sys.stderr)
        sys.exit(ExitCode.ENGINE)


def missing_extra(error: ImportError) -> str | None:
    """The extra of grape-dsl that brings the module which cannot be imported; None if none does."""
    package = (error.name or "").partition(".")[0]
    return "sglang" if package in _RUNTIME else _EXTRAS.get(package)
