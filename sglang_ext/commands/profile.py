"""`grape profile`: measure what steps cost on an engine, so that its policy starts from that."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from grape_dsl.cli import ExitCode
from sglang_ext.commands.bench_progress import BenchProgress
from sglang_ext.commands.failures import answer_sigterm, reported
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.commands.options import model_option
from sglang_ext.commands.profile_table import show, show_check
from sglang_ext.commands.sglang_flags import check_flags
from sglang_ext.commands.table_console import table_console
from sglang_ext.driver.errors import InputError
from sglang_ext.profile import store
from sglang_ext.profile.engine_key import EngineKey
from sglang_ext.profile.profile import Profile

_SECONDS, _QUICK_SECONDS = 240.0, 60.0
_QUICK_KV = 4096
_WIDTH = 110
_FILE = click.Path(path_type=Path, dir_okay=False)
_EXISTING = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("profile")
@click.argument("flags", metavar="[-- SGLANG FLAGS]", nargs=-1, type=click.UNPROCESSED)
@click.option("--quick", is_flag=True, help=f"{_QUICK_SECONDS:.0f} s of steps instead of {_SECONDS:.0f}.")
@model_option
@click.option("--output", type=_FILE, metavar="FILE", help="Write the profile there, not into the cache folder.")
@click.option("--plot", type=_FILE, metavar="FILE", help="Draw the times of steps, as SVG.")
@click.option("--json", "as_json", is_flag=True, help="Print the profile, or the errors of --check, as JSON.")
@click.option("--read", type=_EXISTING, metavar="FILE", help="Show this profile; nothing is measured.")
@click.option(
    "--check",
    "steps",
    type=_EXISTING,
    metavar="STEPS",
    help="How far the profile is from the steps of a recorded run: --read FILE's, else the one in the cache that fits.",
)
def profile(
    flags: tuple[str, ...],
    quick: bool,
    model: str | None,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
    read: Path | None,
    steps: Path | None,
) -> None:
    """Measure how long an engine's steps take, by decoding sequences, context, prefill tokens and cached prefix.

    The profile is kept in the cache folder, where engines with the same model, dtype, device, threads and versions
    find it. SGLang's own flags stand behind --. Let nothing else run on the machine.

    Exit codes: 0 measured or shown, 2 wrong usage or input, 3 engine, 130 Ctrl-C.
    """
    answer_sigterm()
    with reported():
        if (read or steps) and (quick or model or output or flags):
            raise InputError("--read and --check measure nothing, so --quick, --model, --output and flags do not count")
        if steps is not None:
            _check(steps, read, as_json, plot)
            raise SystemExit(ExitCode.OK)
        found = _read(read) if read is not None else _measure(model, flags, quick)
        if read is None:
            _save(found, output or store.file_of(found.key))
        if plot is not None:
            _plot(found, plot)
    if as_json:
        click.echo(found.model_dump_json(indent=1))
    else:
        show(found, table_console(_WIDTH))
    raise SystemExit(ExitCode.OK)


def _measure(model: str | None, flags: tuple[str, ...], quick: bool) -> Profile:
    check_flags(flags)
    console = Console(stderr=True)
    if model is None:
        model = str(fetch_embedded_model(console))
    # SGLang's own modules take seconds.
    from sglang_ext.bench.engine_setup import EngineSetup
    from sglang_ext.bench.step_cost.profile_run import KV, OWN_FLAGS, ProfileRun

    seconds, kv = (_QUICK_SECONDS, _QUICK_KV) if quick else (_SECONDS, KV)
    run = ProfileRun(EngineSetup(model, flags, OWN_FLAGS, pool=None), seconds, kv)
    with BenchProgress(console, "seconds of steps") as progress:
        return run.run(progress)


def _check(steps: Path, file: Path | None, as_json: bool, plot: Path | None) -> None:
    if plot is not None:
        raise InputError("--plot draws a profile: leave --check out")
    from sglang_ext.bench.step_cost.check import check
    from sglang_ext.bench.step_log import StepLog

    log = StepLog(steps)
    try:
        recorded = log.steps()
        profile = _read(file) if file is not None else _fitting(log.key, steps)
        found = check(profile.cost, recorded)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{steps} holds no steps of an engine: {error}") from None
    if as_json:
        click.echo(json.dumps({"profile": profile.key.slug, **found.model_dump()}, indent=1))
    else:
        show_check(found, profile, table_console(_WIDTH))


def _fitting(key: object, steps: Path) -> Profile:
    if key is None:
        raise InputError(f"{steps} does not say which engine it is of; name a profile with --read FILE")
    choice = store.choose(store.AUTO, EngineKey.model_validate(key))
    if choice.profile is None:
        raise InputError(f"no profile for the steps in {steps}: {choice.reason}")
    return choice.profile


def _read(file: Path) -> Profile:
    try:
        return store.read(file)
    except store.ProfileError as error:
        raise InputError(str(error)) from None


def _save(found: Profile, file: Path) -> None:
    try:
        store.save(found, file)
    except OSError as error:
        raise InputError(f"cannot write the profile to {file}: {error.strerror}") from None
    click.echo(f"profile: {file}", err=True)


def _plot(found: Profile, file: Path) -> None:
    from sglang_ext.bench.step_cost.plot import draw

    try:
        file.write_text(draw(found), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--plot: cannot write {file}: {error.strerror}") from None
