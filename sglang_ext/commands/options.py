"""Options that several commands have, each with the same name, meaning and words."""

from __future__ import annotations

from pathlib import Path

import click

model_option = click.option(
    "--model", metavar="PATH", help="A model folder or Hugging Face name; without it the embedded model."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
every_arm_option = click.option("--every-arm", is_flag=True, help="Show stock arms that are the best of nothing, too.")

workloads_option = click.option(
    "--workloads",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Real inputs; without it the few that come with Grape.",
)
chat_option = click.option(
    "--chat", type=click.FloatRange(0, 1), default=0.0, help="Share of ordinary requests among the runs."
)
in_flight_option = click.option(
    "--in-flight", type=click.IntRange(min=1), metavar="N", help="Closed loop: N runs at once, no rate."
)
arrivals_option = click.option(
    "--arrivals",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="An Azure or Mooncake trace, its time scaled to each load; without it a Poisson process.",
)
ttft_option = click.option(
    "--ttft", type=click.FloatRange(0, min_open=True), default=40.0, show_default=True, metavar="STEPS"
)
tbt_option = click.option(
    "--tbt", type=click.FloatRange(0, min_open=True), default=3.0, show_default=True, metavar="STEPS"
)
