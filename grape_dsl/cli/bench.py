"""The group `grape bench`."""

from __future__ import annotations

from typing import ClassVar

import click

from grape_dsl.cli.lazy_group import LazyGroup

WHOLE = "workflows"
"""The benchmark that `grape bench` means when it is given options alone."""


class BenchGroup(LazyGroup):
    prefix = "bench"
    builtin: ClassVar = {"compile": "grape_dsl.cli.bench_compile:bench_compile"}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx):
            args = [WHOLE, *args]
        return super().parse_args(ctx, args)


@click.group(cls=BenchGroup)
def bench() -> None:
    """Measure Grape on this machine. With options alone it is the benchmark `workflows`: `grape bench --quick`."""
