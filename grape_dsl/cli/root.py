"""The root of the `grape` command."""

from __future__ import annotations

from typing import ClassVar

import click

from grape_dsl.cli.lazy_group import LazyGroup


class RootGroup(LazyGroup):
    builtin: ClassVar = {
        "compile": "grape_dsl.cli.compile_command:compile_command",
        "bench": "grape_dsl.cli.bench:bench",
    }


@click.group(cls=RootGroup, context_settings={"max_content_width": 100})
@click.version_option(package_name="grape-dsl", message="grape %(version)s")
def root() -> None:
    """Workflows of LLM calls on SGLang, each prompt prefilled while the calls before it still decode.

    Exit codes: 0 done, 1 the program or the run failed, 2 wrong usage or input, 3 engine or missing package.
    """
