"""`grape doctor`: is everything there, and is the plugin on?"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

from grape_dsl.cli import ExitCode
from sglang_ext.commands.engine_profile import profile_line
from sglang_ext.commands.failures import reported
from sglang_ext.commands.installation import Report, look
from sglang_ext.commands.model_progress import fetch_embedded_model
from sglang_ext.commands.startup import started
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.engine_log import EngineLog
from sglang_ext.driver.errors import EngineError
from sglang_ext.driver.plugin_proof import plugin_state


@click.command("doctor")
@click.option("--engine", "with_engine", is_flag=True, help="Start an engine and ask it, about half a minute.")
@click.option("--model", metavar="PATH", help="The engine's model; without it the embedded model.")
@click.option("--url", metavar="URL", help="Ask a running server; its API key is read from GRAPE_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--verbose", "-v", is_flag=True, help="Show SGLang's log.")
def doctor(with_engine: bool, model: str | None, url: str | None, as_json: bool, verbose: bool) -> None:
    """Look at what is installed and set, and say what keeps workflows from running.

    Exit codes: 0 nothing does, 2 wrong usage, 3 something does.
    """
    if model is not None and not with_engine:
        raise click.UsageError("--model goes with --engine")
    if with_engine and url is not None:
        raise click.UsageError("--engine starts an engine, --url asks a running one; take one of them")
    with reported():
        report = look()
        states = _ask(report, model, url, verbose) if with_engine or url is not None else None
    if as_json:
        click.echo(json.dumps({**asdict(report), "engine": states}, ensure_ascii=False, indent=2))
    else:
        _show(report, states)
    raise SystemExit(ExitCode.ENGINE if report.problems else ExitCode.OK)


def _ask(report: Report, model: str | None, url: str | None, verbose: bool) -> list[Any]:
    """What each scheduler says of the plugin; an engine that fails or lacks it is a problem of the report."""
    if model is None and url is None:
        model = str(fetch_embedded_model(Console(stderr=True)))
    log = None if url else EngineLog(verbose)
    try:
        with started(Engine(model, url=url, log=log), log) as engine:
            return [plugin_state([state]) for state in engine.states()]
    except EngineError as error:
        if error.log_tail:
            click.echo(error.log_tail, err=True)
        report.problems.append(str(error))
        return []
    finally:
        if log is not None:
            log.close()


def _show(report: Report, states: list[Any] | None) -> None:
    wanted = "" if report.sglang == report.supported_sglang else f" (tested with {report.supported_sglang})"
    rows = {
        "grape-dsl": report.grape,
        "sglang": f"{report.sglang or 'not installed'}{wanted}",
        "python": report.python,
        "device": report.device,
        "cpus": report.cpus,
        **{f"default {name}": value for name, value in report.defaults.items()},
        **{group: ", ".join(found) or "none" for group, found in report.plugins.items()},
        "profiles": f"{report.profiles}, {report.profiles_folder}",
        "embedded model": f"{report.embedded_model}, {report.embedded_model_folder}",
        **{f"GRAPE_{name.upper()}": value for name, value in report.settings.items()},
    }
    for rank, state in enumerate(states or ()):
        hooks = {} if state is None else state["hooks"]
        rows[f"engine, scheduler {rank}"] = "no plugin" if state is None else f"plugin {state['version']} applied"
        rows |= {f"  {hook}": "applied" if applied else "not applied" for hook, applied in hooks.items()}
        rows |= {} if state is None else {"  profile": profile_line(state)}
        rows |= {f"  {name}": count for name, count in (state or {}).get("counts", {}).items()}
    width = max(len(name) for name in rows)
    for name, value in rows.items():
        click.echo(f"{name:<{width}}  {value}")
    for problem in report.problems:
        click.echo(f"problem: {problem}", err=True)
    if not report.problems:
        click.echo(
            "nothing keeps workflows from running" + ("" if states else "; --engine starts an engine to be sure")
        )
