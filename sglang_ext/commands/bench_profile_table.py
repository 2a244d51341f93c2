"""The record of `grape bench engine --profile` for reading."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.profile_record import ProfileRecord
from sglang_ext.bench.step_profile import StepProfile


def show(record: ProfileRecord, console: Console) -> None:
    """A table per size of batch."""
    for profile in record.profiles:
        console.print(_table(profile, record.context))
    console.print(
        f"{record.dtype}, {record.threads} threads, attention {record.engine.resolved['attention_backend']}; the "
        "profiler makes each operation dearer, so look at shares; an operation's own time, without those it calls",
        highlight=False,
        markup=False,
    )


def _table(profile: StepProfile, context: int) -> Table:
    title = (
        f"Decode step, batch {profile.batch}, context {context}: {profile.plain_s * 1000:.1f} ms, under the profiler "
        f"{profile.step_s * 1000:.1f} ms"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("operations", no_wrap=True)
    for header in ("ms", "share", "calls"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("the longest")
    for group in profile.groups:
        row = f"{group.seconds * 1000:.2f}", f"{group.share:.0%}", f"{group.calls:,.0f}", ", ".join(group.largest)
        table.add_row(group.group, *row)
    return table
