"""The group `grape bench`."""

from __future__ import annotations

from typing import ClassVar

import click

from grape_dsl.cli.lazy_group import LazyGroup


class BenchGroup(LazyGroup):
    prefix = "bench"
    builtin: ClassVar = {"compile": "grape_dsl.cli.bench_compile:bench_compile"}


@click.group(cls=BenchGroup)
def bench() -> None:
    """Measure Grape on this machine."""
