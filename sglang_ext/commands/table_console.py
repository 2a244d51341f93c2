"""Where the commands' tables are printed."""

from __future__ import annotations

from rich.console import Console


def table_console(width: int) -> Console:
    """Standard output, `width` characters wide where it is no terminal: a file or a pipe has no width of its own."""
    console = Console()
    return console if console.is_terminal else Console(width=width)
