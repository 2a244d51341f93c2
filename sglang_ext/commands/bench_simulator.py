"""`grape bench simulator`: how near the simulator comes to what was measured."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from grape_dsl.cli import ExitCode
from sglang_ext.bench.simulation.engine import SimulationError
from sglang_ext.bench.workflows.simulator_check import SimulatorCheck
from sglang_ext.bench.workflows.simulator_record import SimulatorRecord
from sglang_ext.bench.workflows.store import CellStore
from sglang_ext.commands.bench_record_file import READ_OPTION, read_record
from sglang_ext.commands.bench_simulator_table import show
from sglang_ext.commands.failures import reported
from sglang_ext.commands.options import json_option
from sglang_ext.commands.table_console import table_console
from sglang_ext.driver.errors import InputError

_WIDTH = 150


@click.command("simulator")
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@json_option
@click.option("--read", **READ_OPTION)
def bench_simulator(folder: Path | None, as_json: bool, read: Path | None) -> None:
    """Simulate the runs of a measurement again and compare the figures.

    FOLDER is what `grape bench workflows --output FOLDER` has filled.

    Exit codes: 0 compared, whatever was found; 2 wrong usage or input.
    """
    with reported():
        record = _check(folder) if read is None else read_record(read, SimulatorRecord)
    if as_json:
        click.echo(record.model_dump_json(indent=1))
    else:
        show(record, table_console(_WIDTH))
    raise SystemExit(ExitCode.OK)


def _check(folder: Path | None) -> SimulatorRecord:
    if folder is None:
        raise InputError("name the folder of a measurement, which `grape bench workflows --output FOLDER` fills")
    from sglang_ext.driver.tokenizer_folder import tokenizer_folder

    store = CellStore.found(folder)
    model = str(store.settings.get("model"))
    tokenizer = tokenizer_folder(model, instead="It is the model of the measurement.")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        row = progress.add_task("simulating", total=None)
        check = SimulatorCheck(store, tokenizer, lambda arm: progress.update(row, advance=1, description=arm))
        try:
            return check.run()
        except SimulationError as error:
            raise InputError(f"the simulator cannot run this measurement: {error}") from None
