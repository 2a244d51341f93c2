"""LazyGroup: a group of commands, each imported when it is called or listed."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

import click

from grape_dsl.cli import missing_extra
from grape_dsl.diagnostics import nearest

ENTRY_POINTS = "grape.commands"
"""Packages add commands here: `run` to the root, `bench.gap` as `gap` to the group `bench`.

The entry point names a `click.Command`, a function with Typer parameters, or a `typer.Typer`. Typer is
for commands that are slow to start anyway: parsing with it takes longer than compiling a program.
"""


class LazyGroup(click.Group):
    """Commands by place, `module:attribute`, and those of installed packages.

    Subclasses set `builtin`, and `prefix` where they are not the root.
    """

    builtin: ClassVar[dict[str, str]] = {}
    prefix: ClassVar[str] = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.builtin, *sorted(set(self._added()) - set(self.builtin))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.builtin:
            module, _, attribute = self.builtin[cmd_name].partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            return command
        entry = self._added().get(cmd_name)
        if entry is None:
            return None
        try:
            return as_command(cmd_name, entry.load())
        except ImportError as error:
            return _NotInstalled(cmd_name, error)  # the others can still be listed and called

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            close = nearest(args[0], self.list_commands(ctx))
            hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}. {hint}".rstrip())

    def _added(self) -> dict[str, EntryPoint]:
        found = {}
        for entry in entry_points(group=ENTRY_POINTS):
            group, _, name = entry.name.rpartition(".")
            if group == self.prefix:
                found[name] = entry
        return found


def as_command(name: str, target: Any) -> click.Command:
    """The command for what an entry point names."""
    return target if isinstance(target, click.Command) else _TyperCommand(name, target)


class _PassOn(click.Command):
    """A command that takes all arguments as they are; `invoke` reads them from `ctx.args`."""

    def __init__(self, name: str, help: str | None) -> None:
        super().__init__(name, help=help, add_help_option=False)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return []


class _TyperCommand(_PassOn):
    def __init__(self, name: str, target: Any) -> None:
        self._target = target
        super().__init__(name, inspect.getdoc(target) if inspect.isfunction(target) else target.info.help)

    def invoke(self, ctx: click.Context) -> Any:
        import typer

        app = self._target
        if not isinstance(app, typer.Typer):
            app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
            app.command()(self._target)
        app(args=ctx.args, prog_name=ctx.command_path)


class _NotInstalled(_PassOn):
    def __init__(self, name: str, error: ImportError) -> None:
        self._error = error
        extra = missing_extra(error)
        super().__init__(name, f'Needs: pip install "grape-dsl[{extra}]".' if extra else f"Cannot be loaded: {error}")

    def invoke(self, ctx: click.Context) -> Any:
        raise self._error
